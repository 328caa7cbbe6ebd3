// Package lean is the least that an agent loop can be over net/http: a request that grows
// by what is appended to it, and a stream of which only the few members that matter are
// read. It keeps nothing and checks nothing. Benchmarks hold Pawl against it.
package lean

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Loop runs an agent over Chat Completions.
type Loop struct {
	Client *http.Client
	// Head is a request up to the text of its first message, which is quoted behind it.
	URL, Head string
	// Tool does a call. Those of one answer are done at once.
	Tool func(name, args []byte) (string, error)
	// OnText is called with each piece of text.
	OnText func(string)
	// Keep, if there is one, is called behind each answer and behind its calls.
	Keep func() error
	// Buffer is the size of what streams are read with, which a run holds from its start,
	// where that is not to come from a pool of 16 KiB each.
	Buffer int
}

// Run runs until an answer calls no tool, and returns its text.
func (l *Loop) Run(ctx context.Context, task string) (string, error) {
	body := append(quote([]byte(l.Head), task), '}')
	var in *bufio.Reader
	if l.Buffer > 0 {
		in = bufio.NewReaderSize(nil, l.Buffer)
	} else {
		in = buffers.Get().(*bufio.Reader)
		defer buffers.Put(in)
	}
	var a answer
	for {
		body = append(body, "]}"...)
		if err := l.ask(ctx, body, in, &a); err != nil {
			return "", err
		}
		if err := l.kept(); err != nil || len(a.calls) == 0 {
			return string(a.text), err
		}
		if err := l.call(a.calls); err != nil {
			return "", err
		}
		if err := l.kept(); err != nil {
			return "", err
		}
		body = a.appendTo(body[:len(body)-len("]}")])
	}
}

func (l *Loop) kept() error {
	if l.Keep == nil {
		return nil
	}
	return l.Keep()
}

var (
	buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}
	asJSON  = []string{"application/json"}
	anyKey  = []string{"Bearer k"}
)

// ask sends a request and reads the stream of its answer.
func (l *Loop) ask(ctx context.Context, body []byte, in *bufio.Reader, a *answer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header["Content-Type"], req.Header["Authorization"] = asJSON, anyKey
	resp, err := l.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	a.text, a.calls = a.text[:0], a.calls[:0]
	in.Reset(resp.Body)
	for {
		line, err := in.ReadSlice('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			a.read(data, l.OnText)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// call does the calls of an answer.
func (l *Loop) call(calls []call) (err error) {
	if len(calls) == 1 {
		calls[0].result, err = l.Tool(calls[0].name, calls[0].args)
		return err
	}
	errs := make([]error, len(calls))
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { calls[i].result, errs[i] = l.Tool(calls[i].name, calls[i].args) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
