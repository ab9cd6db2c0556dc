"""CVE-2024-52303: with a middleware, each request that no route answers stays in a cache of handlers."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer


@web.middleware
async def passes(request, handler):
    return await handler(request)


async def known(request):
    return web.Response()


@pytest.fixture(scope="module")
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def server(loop):
    app = web.Application(middlewares=[passes])
    app.router.add_get("/known", known)
    server = TestServer(app)
    loop.run_until_complete(server.start_server())
    yield server
    loop.run_until_complete(server.close())


async def status(server, method, path):
    async with ClientSession() as session, session.request(method, server.make_url(path)) as answer:
        await answer.read()
        return answer.status


@pytest.mark.leak
def test_known(loop, server):
    assert loop.run_until_complete(status(server, "GET", "/known")) == 200


@pytest.mark.leak
def test_not_found(loop, server):
    assert loop.run_until_complete(status(server, "GET", "/unknown")) == 404


@pytest.mark.leak
def test_method_not_allowed(loop, server):
    assert loop.run_until_complete(status(server, "POST", "/known")) == 405
