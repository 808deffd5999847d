"""Beyond one machine: workers sample and label files, the fit is local.

`ulr.distributed.job` is the job, `ulr.distributed.executors` runs it, and only
`ulr.distributed.dask` knows Dask. Nothing is imported here, so that worker processes start fast.
"""
