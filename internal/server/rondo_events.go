package server

import (
	"fmt"
	"strings"

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
		Error     string `json:"error,omitempty"`
	}
)

// The kinds of notifications, as RondoFlow has them.
const (
	levelInfo   = "info"
	levelAction = "action_required"
	levelError  = "error"
)

// rondoEvents are the events of a loop's agent that one event of the loop is.
func rondoEvents(agent string, e *event.Event) []saying {
	switch d := e.Data.(type) {
	case event.RunStarted, event.RunResumed:
		return []saying{status(agent, "running")}
	case event.RunParked:
		return []saying{status(agent, "paused")}
	case event.Iteration:
		return []saying{{"agent:loop_iteration", loopIteration{agent, d.Number, d.MaxIterations}}}
	case event.Progress:
		return []saying{{"notification", notification{
			ID: fmt.Sprintf("loop-progress-%s-%s-%d", agent, e.Run, d.Number), Level: levelInfo, AgentID: agent, Run: e.Run,
			Title: fmt.Sprintf("Loop iteration %d: %s", d.Number, shortened(d.Learning)), Iteration: d.Number, Learning: d.Learning,
		}}}
	case event.ReviewRequested:
		id := e.Run + "/" + d.LoopID
		return []saying{{"notification", notification{
			ID: fmt.Sprintf("loop-approval-%s-%s", agent, id), Level: levelAction, AgentID: agent, Run: e.Run,
			Title: fmt.Sprintf("Loop iteration %d requires manual approval", d.Number), Actions: []string{"approve", "reject"},
			Iteration: d.Number, LoopID: id, Output: d.Output,
		}}}
	case event.RunCompleted:
		n, is := ending(d.Outcome)
		n.ID, n.AgentID, n.Run, n.Iteration = fmt.Sprintf("loop-completed-%s-%s", agent, e.Run), agent, e.Run, d.Outcome.Iterations
		return []saying{{"notification", n}, status(agent, is)}
	}
	return nil
}

func status(agent, is string) saying { return saying{"agent:status", agentStatus{agent, is}} }

// ending is how a loop ends, completed, stopped by somebody or failed, and what its
// agent is then.
func ending(o event.Outcome) (n notification, is string) {
	switch {
	case event.LoopCompleted(o):
		return notification{Level: levelInfo, Title: fmt.Sprintf("Loop completed after %d iterations", o.Iterations), Output: o.FinalOutput}, "idle"
	case o.Status == event.StatusCancelled:
		return notification{Level: levelInfo, Title: fmt.Sprintf("Loop stopped after %d iterations", o.Iterations)}, "idle"
	}
	message := string(o.Reason)
	if o.Error != nil {
		message = o.Error.Message
	}
	at := max(o.AtIteration, o.Iterations)
	why := strings.TrimPrefix(message, fmt.Sprintf("iteration %d: ", at))
	return notification{Level: levelError, Title: fmt.Sprintf("Loop failed at iteration %d: %s", at, why), Error: message}, "error"
}

// shortened is the beginning of a text, for a title.
func shortened(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}
