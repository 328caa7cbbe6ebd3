"""Starts a run on a server of Pawl, prints what happens, and asks you about calls that need an approval.

    pawl serve --agents examples/ask-first --workspace /tmp/notes &
    python3 examples/client-python/client.py ask-first "Publish the release notes."

It needs Python 3.9 and nothing else. PAWL_URL is the server's address. The token is PAWL_TOKEN, or what
'pawl token show' prints.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

URL = os.environ.get("PAWL_URL", "http://127.0.0.1:3001")
TOKEN = os.environ.get("PAWL_TOKEN") or subprocess.check_output(["pawl", "token", "show"], text=True).strip()


def request(method, path, body=None, **headers):
    headers["Authorization"] = "Bearer " + TOKEN
    if body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    try:
        return urllib.request.urlopen(urllib.request.Request(URL + path, body, headers, method=method))
    except urllib.error.HTTPError as refused:  # its body is a problem of RFC 9457
        sys.exit(f"{method} {path}: {refused.code} {refused.read().decode()}")


def events(run, last):
    """The events after the id LAST as they come. The stream goes on until the run has ended."""
    with request("GET", f"/v1/runs/{run}/events", Accept="text/event-stream", **{"Last-Event-ID": last}) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                yield json.loads(line[len(b"data: "):])


def decide(run):
    """Asks about each call that waits, and tells the server what you say."""
    for call in json.load(request("GET", f"/v1/runs/{run}/approvals"))["items"]:
        print(f"May it call {call['tool']} with {json.dumps(call['args'])}? [y/N] ", end="", flush=True)
        yes = sys.stdin.readline().strip().lower() == "y"
        print()
        answer = {"callId": call["callId"], "reason": "said by hand"}
        request("POST", f"/v1/runs/{run}/{'approve' if yes else 'reject'}", answer)


def main(agent, text):
    run = json.load(request("POST", "/v1/runs", {"agent": agent, "input": text}))["id"]
    last = "0"
    while True:
        for event in events(run, last):
            data = event.get("data") or {}
            last = str(event.get("pos") or last)  # live events have no place in the journal
            if event["type"] == "tool_call":
                print("→", data["describe"])
            elif event["type"] == "tool_result":
                print("✗" if data["isError"] else "✓", data["tool"])
            elif event["type"] == "run.parked":
                if data["reason"] != "approval_required":
                    sys.exit(f"the run waits: {data['reason']}")
                break
            elif event["type"] == "run.completed":
                outcome = data["outcome"]
                print(outcome.get("final_output") or outcome["reason"])
                sys.exit(0 if outcome["ok"] else 1)
        decide(run)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: client.py AGENT INPUT")
    main(*sys.argv[1:])
