"""Object storage services: the requests of one bucket, one coroutine for one request.

bucket     `Bucket`, the interface, and what the failures of a request mean
s3         S3 and compatible services
azure      Azure blob storage
gcs        Google Cloud Storage
options    Lance's storage options, translated for each service
"""
