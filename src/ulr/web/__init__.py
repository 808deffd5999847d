"""The page of `ulr serve` and its HTTP API.

`app` puts the parts together, `api` has the routes, `security` decides which requests are answered,
`sessions` keeps what a person has uploaded and chosen, `jobs` classifies in the background, `view`
and `downloads` turn a result into JSON and files. The page in `static` uses the report's modules.
"""
