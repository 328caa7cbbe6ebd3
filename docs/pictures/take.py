#!/usr/bin/env python3
"""Takes the pictures of the README: a run at a terminal, and the page of 'pawl serve'.

Needs tmux, chromium-headless-shell and a binary: 'make pictures' runs it with the one that it builds.
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

here = pathlib.Path(__file__).resolve().parent
example = here.parent.parent / "examples" / "ask-first"
columns, rows = 100, 24
NO_BREAK = "\u00a0"  # browsers fold other spaces
colours = {30: "#6e7681", 31: "#ff7b72", 32: "#3fb950", 33: "#d29922", 34: "#58a6ff", 35: "#bc8cff", 36: "#39c5cf", 37: "#c9d1d9", 90: "#8b949e",
           91: "#ffa198", 92: "#56d364", 93: "#e3b341", 94: "#79c0ff", 95: "#d2a8ff", 96: "#56d4dd", 97: "#f0f6fc"}


def until(what, holds):
    for _ in range(300):
        if found := holds():
            return found
        time.sleep(0.1)
    sys.exit(f"{what}: not within 30 s")


def spans(line, style):
    """The pieces of a line of a terminal, each with the style that escape sequences, also of lines before it, say."""
    for codes, text in re.findall(r"(?:\x1b\[([0-9;]*)m)?([^\x1b]*)", line):
        for code in map(int, filter(None, codes.split(";"))):
            if code == 0:
                style.clear()
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["opacity"] = "0.65"
            elif code == 3:
                style["font-style"] = "italic"
            elif code in (22, 23, 39):
                for key in {22: ("font-weight", "opacity"), 23: ("font-style",), 39: ("fill",)}[code]:
                    style.pop(key, None)
            elif code in colours:
                style["fill"] = colours[code]
        if text:
            css = "".join(f' {key}="{value}"' for key, value in style.items())
            yield f"<tspan{css}>{html.escape(text).replace(' ', NO_BREAK)}</tspan>"


def svg(screen):
    lines = screen.rstrip("\n").split("\n")
    height, width = 18 * len(lines) + 28, int(columns * 8.43) + 28
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
           '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
           '<g font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14" fill="#c9d1d9">']
    style = {}
    out += [f'<text x="14" y="{26 + 18 * at}">{"".join(spans(line, style))}</text>' for at, line in enumerate(lines) if line]
    return "\n".join(out + ["</g></svg>", ""])


def terminal(env, home):
    tmux = ["tmux", "-S", str(home / "tmux"), "-f", "/dev/null"]
    command = 'pawl run agent.yaml "Publish the release notes." --workspace notes --budget 1'
    shown = f"printf '$ %s\\n' '{command}'; {command}; exec cat"
    subprocess.run([*tmux, "new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", "-c", shown], check=True, env=env, cwd=home)
    capture = lambda: subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True).stdout
    try:
        until("the run asks", lambda: "[e]dit" in capture())
        time.sleep(1)
        (here / "terminal.svg").write_text(svg(capture()))
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def page(env, home):
    server = subprocess.Popen(["pawl", "serve", "--addr", "127.0.0.1:0", "--workspace", "notes"], env=env, cwd=home, stdout=subprocess.PIPE, text=True)
    try:
        address, token = server.stdout.readline().strip().split("/#")
        start = urllib.request.Request(address + "/v1/runs", b'{"agent": "ask-first", "input": "Publish the release notes."}',
                                       {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        run = re.search(rb'"id":"([a-z0-9]+)"', urllib.request.urlopen(start).read())[1].decode()
        asked = urllib.request.Request(f"{address}/v1/runs/{run}/approvals", headers={"Authorization": "Bearer " + token})
        until("the run asks", lambda: b"callId" in urllib.request.urlopen(asked).read())
        subprocess.run(["chromium-headless-shell", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,720", "--virtual-time-budget=8000",
                        f"--user-data-dir={home / 'browser'}", f"--screenshot={here / 'page.png'}", f"{address}/#{token}/runs/{run}"], check=True, env=env)
    finally:
        server.terminate()
        server.wait()


def main():
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        for name in ("agent.yaml", "script.yaml"):
            shutil.copy(example / name, home)
        shutil.copytree(example / "project", home / "notes")
        env = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
        env.update(XDG_STATE_HOME=str(home / "state"), TERM="xterm-256color")
        terminal(env, home)
        page(env, home)


main()
