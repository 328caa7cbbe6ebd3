package server

import (
	"net/http"
	"slices"

	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/web"
)

// operations returns the table of the API.
func operations() []operation {
	const get, post = http.MethodGet, http.MethodPost
	const ok, created, accepted = http.StatusOK, http.StatusCreated, http.StatusAccepted
	const viewer, editor, admin = access.Viewer, access.Editor, access.Admin
	goes := []kind{kindEnded, kindDriven, kindStands, kindCannotGo, kindSecrets}
	decides := slices.Concat(goes, []kind{kindNotPending, kindDecided, kindChanged})
	loops := append([]kind{kindNoLoop}, goes...)
	said, unchanged := []int{accepted}, []int{http.StatusNotModified}
	return []operation{
		{method: get, path: "/healthz", summary: "Says that the server is alive", may: access.Anyone, status: ok, service: serves((*Server).health)},
		{method: get, path: "/readyz", summary: "Says that runs can be started and read", may: access.Anyone, status: ok, service: serves((*Server).ready)},
		{method: get, path: "/", summary: "Is the page, which shows runs to people", may: access.Anyone, status: ok, also: unchanged, service: serves((*Server).showPage)},
		{
			method: get, path: web.Assets + "{name}", summary: "Gives one of the files of the page", may: access.Anyone, status: ok, also: unchanged,
			problems: []kind{kindNotFound}, service: serves((*Server).showAsset),
		},
		{method: get, path: "/v1/principal", summary: "Says who the server takes the client for, and the role", may: viewer, status: ok, service: serves((*Server).showPrincipal)},
		{method: get, path: "/openapi.json", summary: "Is this document", may: viewer, status: ok, service: serves((*Server).openAPI)},
		{method: get, path: "/metrics", summary: "Gives what was counted since the server began, in Prometheus' text form", may: viewer, status: ok, service: serves((*Server).showMetrics)},
		{method: get, path: "/v1/audit", summary: "Lists who was refused what, and who changed what, the newest first", may: admin, status: ok, service: serves((*Server).listAudit)},
		{method: get, path: "/v1/agents", summary: "Lists the agents that can be run by name, also teams and loops", may: viewer, status: ok, service: serves((*Server).listAgents)},
		{method: get, path: "/v1/workflows", summary: "Lists the workflows, goals and other files that can be run by name", may: viewer, status: ok, service: serves((*Server).listWorkflows)},
		{
			method: get, path: "/v1/files/{name}", summary: "Shows a file that can be run by name: what it takes, its models, limits and tools, and its problems with their places", may: viewer, status: ok,
			problems: []kind{kindNotFound}, service: serves((*Server).showFile),
		},
		{
			method: get, path: "/v1/files/{name}/plan", summary: "Gives the steps of a workflow, team, loop or goal that can be run by name, also of one that has not run", may: viewer, status: ok,
			problems: []kind{kindNotFound, kindAgent}, service: serves((*Server).showPlan),
		},
		{method: get, path: "/v1/approvals", summary: "Lists the calls of all runs that wait for a decision, those of the newest runs first", may: viewer, status: ok, service: serves((*Server).listApprovals)},
		{method: get, path: "/v1/runs", summary: "Lists the runs, the newest first, or streams the roots that change", may: viewer, status: ok, service: serves((*Server).listRuns), streams: true},
		{
			method: post, path: "/v1/runs", summary: "Starts a run of a file that the server has or, for an admin, of one in the body", may: editor, status: created, service: serves((*Server).startRun),
			problems: []kind{kindAgent}, streams: true, also: said,
		},
		{method: get, path: "/v1/runs/{id}", summary: "Shows a run: its state, its cost, and what it waits for", may: viewer, status: ok, service: serves((*Server).showRun)},
		{
			method: get, path: "/v1/runs/{id}/events", summary: "Gives the events of a run, as pages or as a stream", may: viewer, status: ok, service: serves((*Server).events),
			streams: true, also: []int{http.StatusNoContent},
		},
		{
			method: get, path: "/v1/runs/{id}/view", summary: "Gives what a run did, as pages of entries from the end or as a stream of those that change", may: viewer, status: ok,
			service: serves((*Server).showView), streams: true, also: []int{http.StatusNoContent},
		},
		{method: get, path: "/v1/runs/{id}/view/{entry}", summary: "Gives one entry of a run, named by its id or by the number of one of its events, with all that it tells", may: viewer, status: ok, service: serves((*Server).showEntry)},
		{method: get, path: "/v1/runs/{id}/effects", summary: "Lists what a run, and the runs below it, did after an event: a fork there undoes none of it", may: viewer, status: ok, service: serves((*Server).showEffects)},
		{method: get, path: "/v1/runs/{id}/changes", summary: "Lists the files that the calls of a run, and of the runs below it, wrote or were to write, each with its calls and their diffs", may: viewer, status: ok, service: serves((*Server).showChanges)},
		{method: get, path: "/v1/runs/{id}/iterations", summary: "Lists the iterations of the loops of a run, each with its answer, what judged it and its entry in the log", may: viewer, status: ok, service: serves((*Server).showIterations)},
		{method: get, path: "/v1/runs/{id}/plan", summary: "Gives the steps of a workflow, team, loop or goal as a graph, with what the run did of each", may: viewer, status: ok, service: serves((*Server).showGraph)},
		{method: get, path: "/v1/runs/{id}/trees", summary: "Compares the files of a loop's workspace before the first iteration or after some iteration, as git does", may: viewer, status: ok, service: serves((*Server).showTrees)},
		{method: get, path: "/v1/runs/{id}/forks", summary: "Lists the runs that share events with a run, each before its forks", may: viewer, status: ok, service: serves((*Server).showForks)},
		{
			method: get, path: "/v1/runs/{id}/requests/{cycle}", summary: "Makes the model request of a cycle, or of a compaction in it, again from the journal, proves its bytes, and says what fills it and where it differs from the one before",
			may: viewer, status: ok, service: serves((*Server).showRequest),
		},
		{method: get, path: "/v1/runs/{id}/diff/{other}", summary: "Compares a run with another one: the first event that differs, and the cycles of both", may: viewer, status: ok, service: serves((*Server).showDiff)},
		{method: get, path: "/v1/runs/{id}/spend", summary: "Lists what a run and those below it spent and reserved, each by cycle and model", may: viewer, status: ok, service: serves((*Server).showSpend)},
		{method: get, path: "/v1/runs/{id}/timeline", summary: "Lists what a run did, and what it waited for, as spans of time with the critical path", may: viewer, status: ok, service: serves((*Server).showTimeline)},
		{method: get, path: "/v1/runs/{id}/replay", summary: "Replays a run and those below it from the journal, and reports what would be decided or sent otherwise", may: viewer, status: ok, service: serves((*Server).replayRun)},
		{method: get, path: "/v1/runs/{id}/verify", summary: "Checks the hash chain of a run and of those below it", may: viewer, status: ok, service: serves((*Server).verifyRun)},
		{method: get, path: "/v1/runs/{id}/export", summary: "Gives a run as JSON lines, with all that it refers to, as pawl runs export does", may: viewer, status: ok, service: serves((*Server).exportRun)},
		{method: get, path: "/v1/runs/{id}/approvals", summary: "Lists the calls of a run, and of the runs below it, that wait for a decision", may: viewer, status: ok, service: serves((*Server).showApprovals)},
		{method: get, path: "/v1/runs/{id}/tree", summary: "Lists a run and the runs below it, each before those that it started", may: viewer, status: ok, service: serves((*Server).tree)},
		{method: get, path: "/v1/questions", summary: "Lists what all runs ask people: about calls, reviews and goals, those of the newest runs first", may: viewer, status: ok, service: serves((*Server).listQuestions)},
		{method: get, path: "/v1/runs/{id}/questions", summary: "Lists what a run, and with tree=true also the runs below it, ask people", may: viewer, status: ok, service: serves((*Server).showQuestions)},
		{
			method: post, path: "/v1/runs/{id}/fork", summary: "Makes a run that shares events of this one, and runs it unless run is false; with another model, prompt or result it is for an admin", may: editor, status: created,
			times: notTwice, problems: slices.Concat(goes, []kind{kindFork, kindLimit}), service: serves((*Server).fork),
		},
		{
			method: post, path: "/v1/runs/{id}/continue", summary: "Starts a run that has the conversation of this ended one, and goes on with a message or another budget", may: editor, status: created,
			times: notTwice, problems: slices.Concat(goes, []kind{kindGoing}), service: serves((*Server).continueEnded),
		},
		{
			method: post, path: "/v1/runs/{id}/retry", summary: "Starts an ended workflow again from the steps that failed or were cancelled, or from one step, as a run that keeps what completed; runs it unless run is false", may: editor,
			status: created, times: notTwice, problems: slices.Concat(goes, []kind{kindFork}), service: serves((*Server).retry),
		},
		{
			method: post, path: "/v1/runs/{id}/budget", summary: "Changes a limit of a run; one that has parked at it continues", may: editor, status: ok, also: said,
			problems: slices.Concat(goes, []kind{kindLimit}), service: serves((*Server).raise),
		},
		{
			method: post, path: "/v1/runs/{id}/approve", summary: "Lets what a run asks for happen; the run continues", may: editor, status: ok, also: said,
			problems: slices.Concat(decides, []kind{kindArgs}), service: serves((*Server).approve),
		},
		{
			method: post, path: "/v1/runs/{id}/reject", summary: "Refuses what a run asks for; the run continues", may: editor, status: ok, also: said,
			problems: decides, service: serves((*Server).reject),
		},
		{method: post, path: "/v1/runs/{id}/cancel", summary: "Ends a run", may: editor, status: ok, also: said, problems: goes, service: serves((*Server).cancel)},
		{
			method: post, path: "/v1/runs/{id}/remove", summary: "Deletes an ended run and the runs below it from the journal", may: admin, status: ok,
			problems: []kind{kindGoing, kindForked, kindDriven}, service: serves((*Server).remove),
		},
		{method: post, path: "/v1/runs/{id}/pause", summary: "Parks a run when its calls in progress have ended", may: editor, status: ok, also: said, problems: goes, service: serves((*Server).pause)},
		{method: post, path: "/v1/runs/{id}/resume", summary: "Continues a run that has parked, or that its process left", may: editor, status: ok, problems: goes, service: serves((*Server).resume)},
		{
			method: post, path: rondoPaths + "{id}/loop/start", event: "loop:start", summary: "Starts the loop of an agent", may: editor, status: accepted,
			problems: []kind{kindLoopOff, kindLoopRuns, kindAgent}, service: serves((*Server).startLoop),
		},
		{method: get, path: rondoPaths + "{id}/loop/status", summary: "Shows the loop that runs on an agent, or the last one that did", may: viewer, status: ok, service: serves((*Server).loopStatus)},
		{method: post, path: rondoPaths + "{id}/loop/stop", event: "loop:stop", summary: "Ends the loop that runs on an agent", may: editor, status: ok, also: said, problems: loops, service: serves((*Server).stopLoop)},
		{
			method: post, path: rondoPaths + "{id}/loop/approve", event: "loop:approve", summary: "Decides what an agent's loop asks; the loop continues", may: editor, status: ok, also: said,
			problems: slices.Concat(loops, decides), service: serves((*Server).approveLoop),
		},
		{
			method: post, path: rondoPaths + "{id}/loop/pause", summary: "Parks an agent's loop before its next iteration", may: editor, status: ok, also: said,
			problems: loops, service: serves((*Server).pauseLoop),
		},
		{method: post, path: rondoPaths + "{id}/loop/resume", summary: "Continues an agent's loop that has parked", may: editor, status: ok, problems: loops, service: serves((*Server).resumeLoop)},
		{method: post, path: "/v1/runs/{id}/input", summary: "Adds a message to a run", may: editor, status: ok, also: said, problems: goes, times: notTwice, service: serves((*Server).input)},
	}
}
