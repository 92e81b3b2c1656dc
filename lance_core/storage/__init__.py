"""Object stores: one port (`ObjectStore`), several back ends, and wrappers that count, delay and break."""
