"""Pages that plan with the running scheduler: /plan, and the console's question what still fits on a node.

Plans run one after the other, in slices between scheduling cycles. A plan ends when its client disconnects.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec

from mooring.kit.clock import Clock
from mooring.scheduler.console.pods import pod_types
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import PlanError, PlanRequest, PlanResult, decode_request, pods_named
from mooring.scheduler.plan.slices import NoChanges, run_in_slices
from mooring.scheduler.plan.what_if import OutdatedPlan
from mooring.scheduler.scheduler import Scheduler
from mooring.serving.pages import PageRequest, PageResponse, as_json, namespaces_of, text
from mooring.serving.server import Page

PLAN_RETRY_S = 0.005


class PlanPages:
    """The pages of one scheduler."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._turn = asyncio.Lock()
        self._planner = Planner(scheduler.engine, scheduler.pending_pods)

    def pages(self) -> dict[str, Page]:
        return {"/plan": self._plan_page, "/console/data/plan": self._plan_page, "/console/data/fits": self._fits_page}

    async def _plan_page(self, page_request: PageRequest) -> PageResponse:
        """POST a request (`scheduler.plan.wire`)."""
        if page_request.method != "POST":
            return text("wanted POST with a request as JSON\n", 405)
        try:
            requested = namespaces_of(pods_named(page_request.body))
        except PlanError as error:
            return text(f"{error}\n", 422)
        return replace(await self._planned(page_request.body), requested_namespaces=requested)

    async def _planned(self, body: bytes) -> PageResponse:
        scheduler = self._scheduler
        async with self._turn:
            await self._yield_control()
            try:
                decoding = decode_request(body, scheduler.engine.columns, scheduler.pending_pods)
                request = await run_in_slices(decoding, NoChanges(), self._clock.now_s, self._yield_control)
                await self._yield_control()
                result = await self._plan(request)
                await self._yield_control()
            except PlanError as error:
                return text(f"{error}\n", 422)
            except OutdatedPlan as error:
                return text(f"the cluster changes faster than the plan: {error}; try again\n", 503)
        return PageResponse(msgspec.json.encode(result), content_type="application/json")

    async def _fits_page(self, page_request: PageRequest) -> PageResponse:
        """How many more pods of each type of the cluster fit on a node."""
        name = (page_request.query.get("node") or [""])[0]
        fits: list[dict[str, object]] = []
        async with self._turn:
            await self._yield_control()
            if name not in self._scheduler.engine.columns.row_of:
                return text(f"node: there is no node {name!r}\n", 404)
            for each in pod_types(self._scheduler, name):
                try:
                    answer = (await self._plan(each.request)).capacity
                except (PlanError, OutdatedPlan):
                    continue  # the cluster changes too quickly: the next request finds out
                assert answer is not None, "a capacity plan has a capacity"
                # All other nodes reject a pod that is pinned to this one: the rarest reason is that of this node.
                reason = min(answer.reasons, key=lambda reason: answer.reasons[reason], default="")
                fits.append(
                    {"type": each.title, "pods": each.pods, **each.requests, "fits": answer.groups, "reason": reason}
                )
        return as_json({"node": name, "types": fits})

    async def _plan(self, request: PlanRequest) -> PlanResult:
        return await self._planner.plan_in_slices(request, self._clock.now_s, self._yield_control)

    async def _yield_control(self) -> None:
        await self._clock.wait(0)
        while self._scheduler.event_buffer.is_held:  # a decision waits for extenders, and needs the columns as they are
            await self._clock.wait(PLAN_RETRY_S)
