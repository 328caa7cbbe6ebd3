package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// heartbeat is the interval of heartbeats on an idle stream: a little less than
	// the documented ten seconds.
	heartbeat = 9 * time.Second
	// slowest bounds one write to a reader. A slower reader is disconnected, and
	// resumes after its last event when it reconnects.
	slowest = 30 * time.Second
	// lastWrite bounds a write once the server closes.
	lastWrite = time.Second
	// pieces is the size of one write.
	pieces = 32 << 10
)

// openStream returns the output of a stream, and its context, which ends with the
// request, with the server, and when done is called.
func (s *Server) openStream(w http.ResponseWriter, r *http.Request, status int) (ctx context.Context, out *sse, done func()) {
	leave := s.owners.enter(principalOf(r.Context()))
	ctx, cancel := context.WithCancel(r.Context())
	out = &sse{w: w, control: http.NewResponseController(w), ended: ctx.Err, status: status}
	stop := context.AfterFunc(s.running, func() {
		cancel()
		out.within(lastWrite)
	})
	return ctx, out, func() {
		stop()
		cancel()
		leave()
	}
}

// sse writes server-sent events.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
	status  int
	// ended returns the reason why nothing more may be written.
	ended func() error
	// text is the pending output.
	text []byte
}

// within sets the deadline of the current write and those after it. A test's
// recorder has no deadlines.
func (o *sse) within(d time.Duration) { _ = o.control.SetWriteDeadline(time.Now().Add(d)) }

// write writes the pending output within its time, unless the stream has ended. It
// checks the end after it sets the deadline, so that it cannot extend the shorter
// deadline of the end.
func (o *sse) write() error {
	err := o.writeAll(o.text)
	o.text = o.text[:0]
	return err
}

func (o *sse) writeAll(text []byte) error {
	o.within(slowest)
	if err := o.ended(); err != nil {
		return err
	}
	_, err := o.w.Write(text)
	return err
}

// flush sends everything to the reader.
func (o *sse) flush() error {
	if err := o.write(); err != nil {
		return err
	}
	return o.control.Flush()
}

func (o *sse) begin() error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx would otherwise buffer some kilobytes of events
	h.Set("X-Content-Type-Options", "nosniff")
	o.w.WriteHeader(o.status)
	err := o.comment("stream")
	// The request is complete; the read now only detects a disconnect.
	_ = o.control.SetReadDeadline(time.Time{})
	return err
}

// add adds an event, whose body has no line breaks. Only a durable event has an id,
// so that a reader that reconnects after a live event resumes after the previous
// durable one.
func (o *sse) add(pos int64, kind string, body []byte) error {
	if pos > 0 {
		o.text = fmt.Appendf(o.text, "id: %d\n", pos)
	}
	if kind != "" {
		o.text = fmt.Appendf(o.text, "event: %s\n", kind)
	}
	o.text = append(o.text, "data: "...)
	if len(o.text)+len(body) >= pieces { // shared by the run's readers, so it is not copied for each
		if err := o.write(); err != nil {
			return err
		}
		if err := o.writeAll(body); err != nil {
			return err
		}
	} else {
		o.text = append(o.text, body...)
	}
	o.text = append(o.text, "\n\n"...)
	return nil
}

// addJSON adds an event with a value as its body.
func (o *sse) addJSON(pos int64, kind string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return o.add(pos, kind, body)
}

// comment writes a comment, which readers ignore.
func (o *sse) comment(text string) error {
	o.text = fmt.Appendf(o.text, ": %s\n\n", text)
	return o.flush()
}
