"""Worker processes, which do the work on rows beside the event loop; both ends of the protocol between them.

protocol        the messages of a control socket, and their framing
worker_process  one worker process as the event loop sees it
worker          what runs in that process
fork_server     the process that has loaded what workers need, and forks them
starter         that process as the server sees it
process_pool    a bounded pool of them
shares          what each principal holds of a pool
change_pool     the pool for changes
read_pool       the pool for reads
pipes, spool    rows on their way, and rows that wait for slow clients
memory          the memory of a process
fifos           ends the waits of jobs for a FIFO in the place of a file
"""
