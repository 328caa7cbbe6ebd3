// Package rondo translates the events of a loop into the words of RondoFlow, which
// calls the owner of a loop its agent. Its functions are pure.
package rondo

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Message is an event for RondoFlow's clients.
type Message struct {
	Event string
	Data  any
}

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
		// Run is the loop, and the other fields are the content of the
		// notification.
		Run       string `json:"run"`
		Iteration int    `json:"iteration,omitempty"`
		LoopID    string `json:"loopId,omitempty"`
		Output    string `json:"output,omitempty"`
		Learning  string `json:"learning,omitempty"`
		Error     string `json:"error,omitempty"`
	}
)

// The kinds of RondoFlow's notifications.
const (
	levelInfo   = "info"
	levelAction = "action_required"
	levelError  = "error"
)

// Messages translates an event of a loop into the messages about its agent.
func Messages(agent string, e *event.Event) []Message {
	switch d := e.Data.(type) {
	case event.RunStarted, event.RunResumed:
		return []Message{status(agent, "running")}
	case event.RunParked:
		return []Message{status(agent, "paused")}
	case event.Iteration:
		return []Message{{"agent:loop_iteration", loopIteration{agent, d.Number, d.MaxIterations}}}
	case event.Progress:
		return []Message{{"notification", notification{
			ID: fmt.Sprintf("loop-progress-%s-%s-%d", agent, e.Run, d.Number), Level: levelInfo, AgentID: agent, Run: e.Run,
			Title: fmt.Sprintf("Loop iteration %d: %s", d.Number, shortened(d.Learning)), Iteration: d.Number, Learning: d.Learning,
		}}}
	case event.ReviewRequested:
		id := e.Run + "/" + d.LoopID
		return []Message{{"notification", notification{
			ID: fmt.Sprintf("loop-approval-%s-%s", agent, id), Level: levelAction, AgentID: agent, Run: e.Run,
			Title: fmt.Sprintf("Loop iteration %d requires manual approval", d.Number), Actions: []string{"approve", "reject"},
			Iteration: d.Number, LoopID: id, Output: d.Output,
		}}}
	case event.RunCompleted:
		n, state := ending(d.Outcome)
		n.ID, n.AgentID, n.Run, n.Iteration = fmt.Sprintf("loop-completed-%s-%s", agent, e.Run), agent, e.Run, d.Outcome.Iterations
		return []Message{{"notification", n}, status(agent, state)}
	}
	return nil
}

func status(agent, state string) Message { return Message{"agent:status", agentStatus{agent, state}} }

// ending returns how a loop ended (completed, stopped or failed) and the resulting
// state of its agent.
func ending(o event.Outcome) (n notification, state string) {
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

// shortened returns the beginning of a text, for a title.
func shortened(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}
