"""Temporary credentials for a table on S3: a role, limited to the table by a session policy."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from lance_namespace.errors import ServiceUnavailableError

from lance_core.storage.services.options import Options, connections, s3_arguments
from namespace_server.credentials.temporary import Credentials

_log = logging.getLogger(__name__)

_SESSION: Final = "lance-namespace"
_DEFAULT_REGION: Final = "us-east-1"
_READ: Final = ("s3:GetObject",)
_WRITE: Final = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


class AssumedRole:
    """Issues credentials of a role. The server's own credentials must be allowed to assume it.

    Thread-safe. `storage` are the server's options: their keys and region are used for the token service too.
    """

    def __init__(
        self,
        bucket: str,
        storage: Mapping[str, str],
        role_arn: str,
        permission: str,
        duration: timedelta,
        sts_endpoint: str | None,
        *,
        sole_writer: bool = False,
    ) -> None:
        self._bucket = bucket
        self._role_arn = role_arn
        self._permission = permission
        self._sole_writer = sole_writer
        self._duration = int(duration.total_seconds())
        self._endpoint = sts_endpoint
        self._own = s3_arguments(Options(storage))
        self._proxies = connections(Options(storage)).proxies
        self._lock = threading.Lock()
        self._client: Any = None

    def issue(self, path: str) -> Credentials:
        """New credentials for the objects below a path. Raises ServiceUnavailableError (17)."""
        from botocore.exceptions import BotoCoreError, ClientError

        partition = self._role_arn.split(":")[1]
        policy = session_policy(partition, self._bucket, path, self._permission, sole_writer=self._sole_writer)
        now = time.time()
        try:
            answer = self._service().assume_role(
                RoleArn=self._role_arn, RoleSessionName=_SESSION, Policy=policy, DurationSeconds=self._duration
            )
        except ClientError as error:
            _log.error("the role for clients cannot be assumed: %s", error)
            raise _unavailable(error.response.get("Error", {}).get("Code", "an error")) from None
        except BotoCoreError as error:
            _log.error("the role for clients cannot be assumed: %s", error)
            raise _unavailable(type(error).__name__) from None
        issued = answer["Credentials"]
        options = {
            "aws_access_key_id": issued["AccessKeyId"],
            "aws_secret_access_key": issued["SecretAccessKey"],
            "aws_session_token": issued["SessionToken"],
        }
        return Credentials(options, now, issued["Expiration"].timestamp())

    def _service(self) -> Any:
        with self._lock:
            if self._client is None:
                from botocore.config import Config
                from botocore.session import Session

                self._client = Session().create_client(
                    "sts",
                    region_name=self._own["client_kwargs"].get("region_name") or _DEFAULT_REGION,
                    endpoint_url=self._endpoint,
                    aws_access_key_id=self._own.get("key"),
                    aws_secret_access_key=self._own.get("secret"),
                    aws_session_token=self._own.get("token"),
                    config=Config(
                        connect_timeout=5,
                        read_timeout=10,
                        retries={"total_max_attempts": 3, "mode": "standard"},
                        proxies=self._proxies or None,
                    ),
                )
            return self._client


def session_policy(partition: str, bucket: str, path: str, permission: str, *, sole_writer: bool = False) -> str:
    """The policy that limits a session to the objects below a path, as JSON.

    Args:
        partition: That of the role, such as `aws`.
        bucket: Name of the bucket.
        path: Path of the table in the bucket, without a slash at its ends.
        permission: `read`, or `write` for all that Lance's writers do.
        sole_writer: Whether it refuses manifests of the table under their canonical names, which the server writes.
    """
    place, below = f"arn:{partition}:s3:::{bucket}", _literal(path)
    actions = _READ + (_WRITE if permission == "write" else ())
    statements = [
        {"Effect": "Allow", "Action": list(actions), "Resource": f"{place}/{below}/*"},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": place,
            "Condition": {"StringLike": {"s3:prefix": f"{below}/*"}},  # without the slash also names that go on
        },
        {"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": place},
    ]
    if sole_writer:
        manifests = f"{place}/{below}/*_versions/*.manifest"
        statements.append({"Effect": "Deny", "Action": "s3:PutObject", "Resource": manifests})
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _literal(path: str) -> str:
    """A path in which no character is a wildcard or begins a variable."""
    return "".join(f"${{{letter}}}" if letter in "*?$" else letter for letter in path)


def _unavailable(found: str) -> ServiceUnavailableError:
    return ServiceUnavailableError(f"credentials of the table: expected an answer of the token service, found {found}")
