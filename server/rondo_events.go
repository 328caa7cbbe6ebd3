package server

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// The events of loops, as RondoFlow's clients hear them.
type (
	loopIteration struct {
		AgentID       string `json:"agentId"`
		Iteration     int    `json:"iteration"`
		MaxIterations int    `json:"maxIterations"`
	}
	agentStatus struct {
		AgentID string `json:"agentId"`
		Status  string `json:"status"`
	}
	notification struct {
		ID      string   `json:"id"`
		Level   string   `json:"level"`
		Title   string   `json:"title"`
		AgentID string   `json:"agentId"`
		Actions []string `json:"actions,omitempty"`
		// Run is the loop, and the rest what the notification is about.
		Run       string `json:"run"`
		Iteration int    `json:"iteration,omitempty"`
		LoopID    string `json:"loopId,omitempty"`
		Output    string `json:"output,omitempty"`
		Learning  string `json:"learning,omitempty"`
	}
)

// rondoEvents are the events of a loop's agent that one event of the loop is.
func rondoEvents(agent string, e *event.Event) []saying {
	status := func(is string) saying { return saying{"agent:status", agentStatus{agent, is}} }
	notify := func(n notification, about, level, format string, args ...any) saying {
		n.ID, n.Level, n.AgentID, n.Run = "loop-"+about+"-"+agent+"-"+e.Run, level, agent, e.Run
		n.Title = fmt.Sprintf(format, args...)
		return saying{"notification", n}
	}
	switch d := e.Data.(type) {
	case event.RunStarted, event.RunResumed:
		return []saying{status("running")}
	case event.Iteration:
		return []saying{{"agent:loop_iteration", loopIteration{agent, d.Number, d.MaxIterations}}}
	case event.Progress:
		return []saying{notify(notification{Iteration: d.Number, Learning: d.Learning}, fmt.Sprint("progress-", d.Number), "info", "Loop iteration %d: %s", d.Number, shortened(d.Learning))}
	case event.ReviewRequested:
		id := e.Run + "/" + d.LoopID
		asks := notify(notification{Iteration: d.Number, Output: d.Output, LoopID: id, Actions: []string{"approve", "reject"}}, "approval", "action_required", "Loop iteration %d requires manual approval", d.Number)
		return []saying{asks}
	case event.RunCompleted:
		return ends(d.Outcome, status, notify)
	}
	return nil
}

// ends is how a loop ends: completed, stopped by somebody, or failed.
func ends(o event.Outcome, status func(string) saying, notify func(notification, string, string, string, ...any) saying) []saying {
	n := notification{Iteration: o.Iterations}
	switch {
	case event.LoopCompleted(o):
		n.Output = o.FinalOutput
		return []saying{notify(n, "completed", "info", "Loop completed after %d iterations", o.Iterations), status("idle")}
	case o.Status == event.StatusCancelled:
		return []saying{notify(n, "stopped", "info", "Loop stopped after %d iterations", o.Iterations), status("idle")}
	}
	message := string(o.Reason)
	if o.Error != nil {
		message = o.Error.Message
	}
	return []saying{notify(n, "failed", "error", "Loop failed at iteration %d: %s", max(o.AtIteration, o.Iterations), message), status("error")}
}

// shortened is the beginning of a text, for a title.
func shortened(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}
