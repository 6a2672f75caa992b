"""Ledgers to test with: on SQLite, and on a PostgreSQL server that the tests start on the loopback."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

__all__ = ["new_database", "postgresql", "programs"]


@cache
def programs() -> Path | None:
    """Where initdb and pg_ctl are; None where PostgreSQL is not installed."""
    places = [Path(found).resolve().parent for found in (shutil.which("initdb"), shutil.which("pg_ctl")) if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """A server of its own, stopped at the end; the URL of its first database."""
    place = programs()
    if place is None:
        pytest.skip(
            "PostgreSQL is not installed (initdb and pg_ctl are not there): its half of the ledger is not tested"
        )
    pytest.importorskip("psycopg", reason="psycopg is not installed: the ledger on PostgreSQL is not tested")
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:  # pytest's own may be closed to other users
        data = f"{folder}/data"
        if user is not None:
            shutil.chown(folder, user)

        def call(program: str, *arguments: str) -> None:
            environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
            command = [str(place / program), "-D", data, *arguments]
            subprocess.run(
                command, check=True, user=user, cwd=folder, env=environment, stdout=subprocess.DEVNULL, timeout=60
            )

        call("initdb", "-U", "tester", "--auth=trust", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        options += (
            " -c max_connections=60 -c fsync=off -c full_page_writes=off"  # the tests kill clients, not the machine
        )
        call("pg_ctl", "-w", "-o", options, "-l", f"{folder}/log", "start")
        try:
            yield f"postgresql+psycopg://tester@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "-w", "-m", "immediate", "stop")


def new_database(server: str) -> str:
    """A fresh database on a server; its URL."""
    import sqlalchemy

    name = f"ledger_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return server.rpartition("/")[0] + f"/{name}"
