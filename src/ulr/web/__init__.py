"""The page of `ulr serve` and its HTTP API.

`app` puts the parts together, `api` has the routes, `schemas` what they take and return, `security`
decides which requests are answered, `sessions` keeps what a person has uploaded and chosen, `jobs`
runs `classification` in the background, `view` and `downloads` turn a result into JSON and files.
The page in `static` uses the report's modules.
"""

from ulr.web.app import create_app
from ulr.web.settings import MEGABYTE, ServerSettings, is_loopback

__all__ = ["MEGABYTE", "ServerSettings", "create_app", "is_loopback"]
