"""Object storage services: the requests of one bucket, one method for one request.

bucket          `Bucket`, the interface, and what the failures of a request mean
s3              S3 and compatible services, through obstore and s3fs
azure           Azure blob storage, through adlfs
gcs             Google Cloud Storage, through gcsfs
obstore_errors  the answer behind an error of obstore
options         Lance's storage options, translated for each service

Another service is a `Bucket` here, its options, its schemes in `storage.opening.BUCKETS` and its case there. All
that asks whether an address is one of a bucket looks there; `BucketStore` does the rest.
"""
