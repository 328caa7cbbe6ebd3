package drive

import (
	"strconv"
	"sync/atomic"
	"time"
)

// The words that all loops say to the model.
const (
	Model  = "sim-1"
	System = "You are a worker. Call the tools as you are asked."

	EchoName = "echo"
	EchoDoes = "Says a text once more."
	SumName  = "sum"
	SumDoes  = "Adds two numbers."
)

// Echo are the arguments of a tool that says a text once more, Sum those of one that adds.
type (
	Echo struct {
		Text string `json:"text" jsonschema:"what is to be said"`
		MS   int    `json:"ms" jsonschema:"how long to wait in ms"`
	}
	Sum struct {
		A  int `json:"a" jsonschema:"the one number"`
		B  int `json:"b" jsonschema:"the other number"`
		MS int `json:"ms" jsonschema:"how long to wait in ms"`
	}
)

var calls, shown atomic.Int64

// Do says the text.
func (e Echo) Do() (string, error) {
	wait(e.MS)
	return e.Text, nil
}

// Do adds the numbers.
func (s Sum) Do() (string, error) {
	wait(s.MS)
	return strconv.Itoa(s.A + s.B), nil
}

func wait(ms int) {
	calls.Add(1)
	if ms > 0 {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
}

// Show takes a piece of an answer, as a program would that shows it.
func Show(text string) { shown.Add(int64(len(text))) }
