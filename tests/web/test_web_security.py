"""Which requests are answered: names, origins, tokens, sizes and paths."""

import pytest

from ulr.errors import InputError

TOKEN = "a-long-token"
OWN = ["localhost", "127.0.0.1:8321", "[::1]:80", "LOCALHOST"]
OTHERS = ["evil.example", "localhost.evil.example", "", "[", "10.0.0.1"]


@pytest.mark.parametrize("host", OWN + OTHERS)
def test_only_requests_to_own_names_are_answered(client, host):
    answer = client.get("/api/status", headers={"host": host})
    assert answer.status_code == (200 if host in OWN else 400)
    assert host in OWN or "--allow-host" in answer.json()["error"]


def test_further_names_can_be_allowed(new_client):
    client = new_client(host="0.0.0.0", allowed_hosts=("ulr.example",), token=TOKEN)
    token = {"authorization": f"Bearer {TOKEN}"}
    for host, status in {"ulr.example": 200, "10.0.0.1:80": 200, "evil.example": 400}.items():
        assert client.get("/api/status", headers={"host": host, **token}).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"origin": "http://localhost"}, 201),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:9"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-origin"}, 201),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_requests_from_other_sites_are_refused(client, headers, status):
    assert client.post("/api/example", headers=headers).status_code == status
    answer = client.post("/api/labels", json={"text": "a, b"}, headers=headers)
    assert answer.status_code == (200 if status == 201 else 403)
    for path in ("/api/status", "/static/page.js"):
        read = client.get(path, headers=headers).status_code
        assert read == (200 if status == 201 else 403)
    if "origin" not in headers:  # a link on another site opens the page
        assert client.get("/", headers=headers).status_code == 200


def test_a_token_is_needed_for_everything_and_an_address_with_it_opens_the_page(new_client):
    client = new_client(token=TOKEN)
    for path in ("/", "/api/status", "/static/page.js", "/api/openapi.json"):
        assert client.get(path).status_code == 401
        assert client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
        assert client.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/?token=wrong").status_code == 401
    answer = client.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert client.get("/").status_code == 200
    assert client.get("/api/status").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])
def test_an_address_that_others_reach_needs_a_token(host):
    from ulr.web import ServerSettings

    with pytest.raises(InputError, match="needs a token"):
        ServerSettings(host=host, encoder="static")
    assert ServerSettings(host=host, token=TOKEN, encoder="static").host == host


@pytest.mark.parametrize("path", ["/", "/api/status", "/static/page.js", "/nothing"])
def test_every_answer_has_the_policy(client, path):
    headers = client.get(path).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_page_has_no_inline_script_or_style_and_no_address_of_another_server(client):
    page = client.get("/").text
    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == page.count('<script type="module" src="/static/')
    assert "://" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/report/../../web/app.py",
        "/static//etc/passwd",
        "/api/sessions/..%2f..%2fetc",
        "/docs",
    ],
)
def test_no_other_file_of_the_server_is_reachable(client, path):
    assert client.get(path).status_code in (404, 405)


@pytest.mark.parametrize("name", ["../../x.csv", "/etc/x.csv", "..\\..\\x.csv", "C:\\x.csv"])
def test_the_name_of_an_upload_is_no_path(client, new_person, name):
    person = new_person(client, b"text\na\nb\n", name)
    assert person.info["name"].endswith("x.csv")
    assert "/" not in person.info["name"]
    folder = client.app.state.server.sessions.folder
    assert [file.name for file in folder.rglob("*") if file.is_file()] == ["data"]


def test_large_requests_are_refused(new_client):
    client = new_client(max_upload=3 << 20)
    parts = (b"x" * (1 << 20) for _ in range(4))
    for path, content, limit in (
        ("/api/sessions", b"x" * (4 << 20), 3),
        ("/api/sessions", parts, 3),
        ("/api/predict", b"x" * (11 << 20), 10),
    ):
        answer = client.post(path, content=content)
        assert answer.status_code == 413
        assert f"at most {limit} MB" in answer.json()["error"]
    assert list(client.app.state.server.sessions.folder.iterdir()) == []
