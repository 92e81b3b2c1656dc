"""Object stores: one interface, several back ends, and wrappers.

port            `ObjectStore`, the interface, with the atomicity of each method
opening         `open_store`: a store from a URI and options
local           files below a directory
memory          objects in the memory of this process
bucket_store    objects in a bucket
services/       the requests of S3, Azure and Google, for `bucket_store`
wrappers/       stores that count or delay requests to another store
keys            which keys a store accepts
sizes           bounds on the files that are read whole, by kind
retries         repeats writes whose answer was lost
overlap         runs blocking calls in threads
durability      fsync of files and directories, for `local`
file_bytes      reads, writes and copies of files, for `local`
local_files     object metadata from directory entries, for `local`
renaming        locks, exclusive rename and conditional exchange of files, for `local`
"""
