# The page and the HTTP API of `ulr serve`, without rights and on a read-only file system:
#   make container
#   docker run --read-only --tmpfs /tmp --cap-drop ALL -p 127.0.0.1:8321:8321 -e ULR_TOKEN=SECRET ulr
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/ulr \
    && /opt/ulr/bin/pip install --no-cache-dir --constraint constraints.txt '.[strong,web]'

FROM python:3.13-slim
COPY --from=build /opt/ulr /opt/ulr
ENV PATH=/opt/ulr/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
EXPOSE 8321
# Without the token, a server that works answers 401.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8321, timeout=4); c.request('GET', '/'); exit(c.getresponse().status != 401)"]
ENTRYPOINT ["ulr", "serve", "--host", "0.0.0.0"]
