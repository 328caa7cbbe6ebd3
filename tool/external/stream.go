package external

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// mostLine bounds a line of a stream; longer lines are skipped.
const mostLine = 4 << 20

// Stream reads the events that a known agent prints as lines of JSON. The first object
// identifies the agent; any other output is text. The zero value is ready for use. It
// is not safe for concurrent use.
type Stream struct {
	line []byte
	// long reports that the current line is skipped.
	long   bool
	form   *form
	text   bool
	report event.CommandReport
	limit  limit
	// root is the run of a Pawl stream.
	root string
	// message is Gemini's newest message, which arrives in pieces; fresh reports that
	// the next piece begins another one.
	message []byte
	fresh   bool
}

// form is the format of a known agent's stream.
type form struct {
	name string
	// begins lists the possible types of the first event.
	begins []string
	take   func(s *Stream, kind string, line []byte)
}

func forms() []form {
	return []form{
		{"claude", []string{"system", "assistant", "result", "rate_limit_event"}, takeClaude},
		{"codex", []string{"thread.started", "thread.resumed"}, takeCodex},
		{"gemini", []string{"init"}, takeGemini},
		{"pawl", []string{string(event.TypeRunStarted), string(event.TypeRunResumed)}, takePawl},
	}
}

// Write processes the next bytes. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	n := len(p)
	for !s.text {
		head, rest, ended := bytes.Cut(p, []byte("\n"))
		if s.long = s.long || len(s.line)+len(head) > mostLine; !s.long {
			s.line = append(s.line, head...)
		}
		if !ended {
			break
		}
		s.end()
		p = rest
	}
	return n, nil
}

// end processes a complete line.
func (s *Stream) end() {
	line := bytes.TrimSpace(s.line)
	long := s.long
	s.line, s.long = s.line[:0], false
	if long || len(line) == 0 || line[0] != '{' {
		return
	}
	var kind struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(line, &kind)
	if s.form == nil {
		all := forms()
		i := slices.IndexFunc(all, func(f form) bool { return slices.Contains(f.begins, kind.Type) })
		if s.text = i < 0; s.text {
			return
		}
		s.form = &all[i]
	}
	s.form.take(s, kind.Type, line)
}

// Report returns the report on the work after the stream has ended.
func (s *Stream) Report() event.CommandReport {
	if s.end(); s.form == nil {
		return event.CommandReport{}
	}
	r := s.report
	if r.Form = s.form.name; len(s.message) > 0 {
		r.Text = strings.ToValidUTF8(string(s.message), "")
	}
	return r
}

func upTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// read decodes the parts of a line that have the expected form, so that additions of
// other versions do not matter.
func read[T any](line []byte) (v T) {
	_ = json.Unmarshal(line, &v)
	return v
}

// errorText returns the text of an error in a stream: a string or an object with a
// message.
func errorText(raw json.RawMessage) string {
	if text := read[string](raw); text != "" {
		return text
	}
	return read[struct {
		Message string `json:"message"`
	}](raw).Message
}

// takeClaude reads the output of 'claude -p --output-format stream-json', and the
// single line of '--output-format json'.
func takeClaude(s *Stream, kind string, line []byte) {
	switch kind {
	case "assistant":
		m := read[struct {
			Message struct {
				Content []struct{ Type, Text string } `json:"content"`
			} `json:"message"`
		}](line)
		var texts []string
		for _, c := range m.Message.Content {
			if c.Type == "text" && strings.TrimSpace(c.Text) != "" {
				texts = append(texts, c.Text)
			}
		}
		if len(texts) > 0 {
			s.report.Text = strings.Join(texts, "\n")
		}
	case "rate_limit_event":
		m := read[struct {
			Info struct {
				Status   string `json:"status"`
				ResetsAt int64  `json:"resetsAt"`
			} `json:"rate_limit_info"`
		}](line)
		if m.Info.Status == "rejected" {
			s.limit = limit{said: "its provider's limit is reached"}
			s.limit.at(m.Info.ResetsAt)
		}
	case "result":
		m := read[struct {
			Subtype string   `json:"subtype"`
			Result  string   `json:"result"`
			IsError bool     `json:"is_error"`
			Cost    *float64 `json:"total_cost_usd"`
			Usage   *struct {
				Input      int64 `json:"input_tokens"`
				CacheWrite int64 `json:"cache_creation_input_tokens"`
				CacheRead  int64 `json:"cache_read_input_tokens"`
				Output     int64 `json:"output_tokens"`
			} `json:"usage"`
		}](line)
		if m.Result != "" {
			s.report.Text = m.Result
		}
		if m.IsError {
			s.report.Failed = strings.TrimSpace(m.Subtype + ": " + m.Result)
		}
		if u := m.Usage; u != nil {
			s.uses(llm.Usage{Input: u.Input + u.CacheWrite + u.CacheRead, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
		}
		if m.Cost != nil {
			s.costs(*m.Cost)
		}
	}
}

// takeCodex reads the output of 'codex exec --json'.
func takeCodex(s *Stream, kind string, line []byte) {
	switch kind {
	case "item.completed":
		m := read[struct {
			Item struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"item"`
		}](line)
		if m.Item.Type == "agent_message" {
			s.report.Text = m.Item.Text
		}
	case "turn.completed":
		m := read[struct {
			Usage struct {
				Input     int64 `json:"input_tokens"`
				Cached    int64 `json:"cached_input_tokens"`
				Output    int64 `json:"output_tokens"`
				Reasoning int64 `json:"reasoning_output_tokens"`
			} `json:"usage"`
		}](line)
		s.report.Failed = "" // the agent recovered from an earlier error
		s.uses(llm.Usage{Input: m.Usage.Input, CacheRead: m.Usage.Cached, Output: m.Usage.Output, Reasoning: m.Usage.Reasoning})
	case "turn.failed":
		s.report.Failed = errorText(read[struct{ Error json.RawMessage }](line).Error)
	case "error":
		s.report.Failed = read[struct{ Message string }](line).Message
	}
}

// takeGemini reads the output of 'gemini --output-format stream-json'.
func takeGemini(s *Stream, kind string, line []byte) {
	if kind != "message" {
		s.fresh = true
	}
	switch kind {
	case "message":
		m := read[struct {
			Role    string `json:"role"`
			Content string `json:"content"`
			Delta   bool   `json:"delta"`
		}](line)
		switch {
		case m.Role != "assistant":
			s.fresh = true
		case m.Delta && !s.fresh && len(s.message) > mostResult+mostSecret:
		case m.Delta && !s.fresh:
			s.message = append(s.message, m.Content...)
		default:
			s.message, s.fresh = []byte(m.Content), !m.Delta
		}
	case "result":
		m := read[struct {
			Status string          `json:"status"`
			Error  json.RawMessage `json:"error"`
			Stats  *struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
				Cached int64 `json:"cached"`
			} `json:"stats"`
		}](line)
		if m.Status == "error" {
			s.report.Failed = "error: " + errorText(m.Error)
		}
		if u := m.Stats; u != nil {
			s.uses(llm.Usage{Input: u.Input, Output: u.Output, CacheRead: u.Cached})
		}
	}
}

// takePawl reads the output of 'pawl run --json': the events of a run and its
// descendants.
func takePawl(s *Stream, kind string, line []byte) {
	e, err := event.Decode(line)
	if err != nil {
		return
	}
	if s.root == "" {
		s.root = e.Run
	}
	if e.Run != s.root {
		return
	}
	switch d := e.Data.(type) {
	case event.RunCompleted:
		s.report.Text = d.Outcome.FinalOutput
		s.report.Failed = ""
		if !d.Outcome.OK {
			s.report.Failed = string(d.Outcome.Reason)
			if d.Outcome.Error != nil {
				s.report.Failed += ": " + d.Outcome.Error.Message
			}
		}
		s.uses(d.Outcome.Usage)
		s.report.Cost = d.Outcome.Cost
	case event.RunParked:
		s.report.Failed = "it is parked as " + string(d.Reason) + ": " + d.Detail
		if d.Until != nil {
			s.limit = limit{said: s.report.Failed, until: d.Until}
		}
	case event.RunResumed:
		s.report.Failed, s.limit = "", limit{}
	}
}

// uses records the usage of the work. It ignores a missing count, and a count lower
// than before.
func (s *Stream) uses(u llm.Usage) {
	if u == (llm.Usage{}) || min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning) < 0 {
		return
	}
	s.report.Usage = &u
}

func (s *Stream) costs(usd float64) {
	if usd <= 0 {
		return
	}
	s.report.Cost = &llm.Cost{USD: usd, Priced: true}
}

// at sets when a limit ends, in seconds since 1970.
func (l *limit) at(seconds int64) {
	if seconds > 0 && seconds < 1<<40 {
		until := time.Unix(seconds, 0).UTC()
		l.until = &until
	}
}
