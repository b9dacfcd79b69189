"""Several replicas: the files agree with each other, a replica may die, and none ends with an error."""

import asyncio
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import classroom
from deploy.cluster import Cluster, settings

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
PORT = int(settings()["STREAMLIT_SERVER_PORT"])
READY, ALIVE, COOKIE = "/readyz", "/_stcore/health", "headlight"


def documents() -> dict[str, dict[str, Any]]:
    """Every Kubernetes manifest by its kind."""
    found = {}
    for path in sorted(DEPLOY.glob("kubernetes/*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            found[document["kind"]] = document
    return found


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def container() -> dict[str, Any]:
    (found,) = documents()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return found


def caddyfile() -> list[list[str]]:
    return [line.split() for line in (DEPLOY / "Caddyfile").read_text(encoding="utf-8").splitlines()]


def dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def test_one_port_from_the_image_to_the_proxy() -> None:
    assert f"EXPOSE {PORT}\n" in dockerfile()
    (port,) = container()["ports"]
    assert port["containerPort"] == PORT
    (served,) = documents()["Service"]["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    (rule,) = documents()["Ingress"]["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": documents()["Service"]["metadata"]["name"], "port": {"name": served["name"]}}
    replicas = [name for name in compose()["services"] if name != "caddy"]
    asked = compose()["services"]["caddy"]["environment"]["HEADLIGHT_REPLICAS"].split()
    assert asked == [f"{name}:{PORT}" for name in replicas]
    assert len(replicas) == 3


def test_everybody_asks_the_same_paths_for_health() -> None:
    assert ["health_uri", READY] in caddyfile()
    assert f"http://127.0.0.1:{PORT}{READY}" in dockerfile()
    assert container()["readinessProbe"]["httpGet"]["path"] == READY
    assert container()["livenessProbe"]["httpGet"]["path"] == ALIVE
    assert f'Route("{READY}"' in (ROOT / "serve.py").read_text(encoding="utf-8")


def test_a_cookie_and_no_address_keeps_a_reader_where_she_was() -> None:
    assert ["lb_policy", "cookie", COOKIE, "{$HEADLIGHT_SECRET}", "{"] in caddyfile()
    assert ["fallback", "least_conn"] in caddyfile()
    service = documents()["Service"]
    sticky = "traefik.ingress.kubernetes.io/service.sticky.cookie"
    assert service["metadata"]["annotations"][sticky] == "true"
    assert service["metadata"]["annotations"][f"{sticky}.name"] == COOKIE
    assert "sessionAffinity" not in service["spec"]


def test_all_replicas_read_the_same_settings() -> None:
    kustomization = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text(encoding="utf-8"))
    (settings_,) = kustomization["configMapGenerator"]
    assert settings_ == {"name": "headlight", "envs": ["production.env"]}
    assert container()["envFrom"] == [{"configMapRef": {"name": settings_["name"]}}]
    for name, service in compose()["services"].items():
        if name != "caddy":
            assert service["env_file"] == "production.env"
            assert "STREAMLIT_SERVER_COOKIE_SECRET" in service["environment"]
    assert {path.relative_to(DEPLOY).as_posix() for path in DEPLOY.glob("kubernetes/*.yaml")} == {
        *kustomization["resources"]
    }


def test_the_drain_fits_into_the_time_that_is_given_to_end() -> None:
    drain = float(settings()["HEADLIGHT_DRAIN"])
    interval = next(line[1] for line in caddyfile() if line[:1] == ["health_interval"])
    assert drain > 2 * float(interval.removesuffix("s"))
    pod = documents()["Deployment"]["spec"]["template"]["spec"]
    waits = float(container()["lifecycle"]["preStop"]["exec"]["command"][1])
    assert waits >= 15
    assert pod["terminationGracePeriodSeconds"] > waits + drain
    for name, service in compose()["services"].items():
        assert name == "caddy" or float(service["stop_grace_period"].removesuffix("s")) > drain


def test_a_replica_runs_as_nobody_and_writes_nothing() -> None:
    user = documents()["Deployment"]["spec"]["template"]["spec"]["securityContext"]
    assert user["runAsNonRoot"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}\n" in dockerfile()
    assert container()["securityContext"]["readOnlyRootFilesystem"]
    assert all(
        service["read_only"] and service["cap_drop"] == ["ALL"]
        for name, service in compose()["services"].items()
        if name != "caddy"
    )


def test_the_image_has_all_that_the_app_imports() -> None:
    copied = {
        source
        for line in dockerfile().splitlines()
        if line.startswith("COPY")
        for source in line.split()[1:-1]
    }
    assert copied == {"requirements.txt", "app.py", "serve.py", ".streamlit", "model", "viz", "assets"}
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    assert {f"!{source}" for source in copied} < {*ignored}
    code = (
        "import sys, serve, viz.cache, viz.pages; ours = {m.__file__ for m in sys.modules.values() if"
        " getattr(m, '__file__', None)}; print('\\n'.join(ours))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    places = {Path(line).relative_to(ROOT).parts[0] for line in ran.stdout.splitlines() if str(ROOT) in line}
    assert places - {".venv"} <= copied


def test_caddy_understands_its_file() -> None:
    command = [Path(sys.executable).parent / "caddy", "validate", "--adapter", "caddyfile", "--config"]
    variables = {"HEADLIGHT_SITE": "http://:1", "HEADLIGHT_REPLICAS": "a:1 b:1", "HEADLIGHT_SECRET": "x"}
    subprocess.run([*command, DEPLOY / "Caddyfile"], check=True, capture_output=True, env=variables)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl")
def test_kustomize_renders_what_selects_itself() -> None:
    ran = subprocess.run(["kubectl", "kustomize", DEPLOY], check=True, capture_output=True, text=True)
    rendered = {document["kind"]: document for document in yaml.safe_load_all(ran.stdout)}
    labels = rendered["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert labels
    assert rendered["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert rendered["Service"]["spec"]["selector"] == labels
    assert rendered["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert rendered["ConfigMap"]["data"] == settings()


# --- on this machine --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Cluster(replicas=2, port=port, drain=2) as cluster:
        yield cluster


def test_who_loses_her_replica_sees_the_same_view_at_her_next_action(cluster: Cluster) -> None:
    found = asyncio.run(classroom.killed(cluster, readers=30))
    assert 10 <= found["lost_their_replica"] <= 20  # least_conn spread them, though they share one address
    assert found["errors"] == 0
    assert found["action"]["max_ms"] <= 5000
    cluster.wait(cluster.ports[0])  # and it was started again


def test_a_restart_in_turn_shows_no_error(cluster: Cluster) -> None:
    found = asyncio.run(classroom.rolled(cluster, readers=6))
    assert found["connections_lost"] >= 6  # everybody lost one, and nobody was told
    assert found["errors"] == 0, found["troubles"]
    assert found["place"]["count"] >= 6


def test_the_proxy_hides_what_is_for_its_keeper(cluster: Cluster) -> None:
    for path in ("/_stcore/metrics", "/_stcore/agent/openapi.json", READY):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(cluster.url + path, timeout=10)
    with urllib.request.urlopen(cluster.url + "/masks?text=x", timeout=10) as answer:
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'self'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert f"{COOKIE}=" in answer.headers["Set-Cookie"]
