package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// errMalformed is the error of a stream with invalid events.
var errMalformed = errors.New("malformed event")

// Events decodes events until the one that ends the message. A stream that ends before
// it is broken, whatever it contained.
func (d *decoder) Events(events *wire.EventReader) error {
	for !d.stopped {
		_, data, err := events.Next()
		if err != nil {
			return err
		}
		if err := d.event(data); err != nil {
			return err
		}
	}
	return nil
}

// DecodeBody decodes an answer that is not streamed.
func (d *decoder) DecodeBody(body []byte) error {
	if !wire.Valid(body) {
		return io.ErrUnexpectedEOF
	}
	return d.message(body)
}

// event folds one event into the answer. It ignores the name of the event, which the
// data repeats, because some gateways send only the data.
func (d *decoder) event(data []byte) error {
	var kind, index, delta, block, message, usage, failure, requestID []byte
	m := wire.ScanObject(data)
	for m.Next() {
		switch string(m.Key()) {
		case "type":
			kind = m.Value()
		case "index":
			index = m.Value()
		case "delta":
			delta = m.Value()
		case "content_block":
			block = m.Value()
		case "message":
			message = m.Value()
		case "usage":
			usage = m.Value()
		case "error":
			failure = m.Value()
		case "request_id":
			requestID = m.Value()
		}
	}
	if m.Err() != nil {
		return fmt.Errorf("%w: %w", errMalformed, m.Err())
	}
	switch string(kind) {
	case `"content_block_delta"`:
		return d.delta(wire.Int(index), delta)
	case `"content_block_start"`:
		i := wire.Int(index)
		if i == 0 {
			d.content = nil // the stream contains all of it
		}
		if err := d.wholeBlocks(); err != nil {
			return err
		}
		return d.startBlock(i, block)
	case `"content_block_stop"`:
		return d.stopBlock(wire.Int(index))
	case `"message_start"`:
		return d.startMessage(message)
	case `"message_delta"`:
		return d.endTurn(delta, usage)
	case `"message_stop"`:
		return d.stopMessage()
	case `"error"`:
		return newError(failure, requestID)
	}
	if kind == nil && len(failure) > 0 && string(failure) != "null" {
		return newError(failure, requestID) // the form that relays of other protocols use
	}
	return nil
}

// startMessage applies the head of an answer. Some gateways send it twice; the second
// one counts. Its content is usually empty; calls that the model's code made are
// complete in it.
func (d *decoder) startMessage(message []byte) error {
	d.started = true
	m := wire.ScanObject(message)
	for m.Next() {
		if string(m.Key()) == "content" {
			d.content = bytes.Clone(m.Value())
			continue
		}
		d.head(m.Key(), m.Value())
	}
	return m.Err()
}

// head applies the members that a streamed and a whole message share.
func (d *decoder) head(key, value []byte) {
	switch string(key) {
	case "id":
		d.resp.ID = wire.Text(value)
	case "model":
		d.resp.Model = wire.Text(value)
	case "usage":
		d.usage.merge(value)
	default:
		d.stop(key, value)
	}
}

// stop records why the answer ended. A refusal has details with an explanation for
// people.
func (d *decoder) stop(key, value []byte) {
	switch string(key) {
	case "stop_reason":
		d.resp.RawFinish = wire.Text(value)
	case "stop_details":
		d.resp.FinishDetail = wire.Text(wire.Member(value, "explanation"))
	}
}

// endTurn records the reason of the end and the usage, which is cumulative: the last
// report counts.
func (d *decoder) endTurn(delta, usage []byte) error {
	m := wire.ScanObject(delta)
	for m.Next() {
		d.stop(m.Key(), m.Value())
	}
	d.usage.merge(usage)
	return m.Err()
}

func (d *decoder) stopMessage() error {
	if err := d.wholeBlocks(); err != nil {
		return err
	}
	switch {
	case !d.started:
		return fmt.Errorf("%w: the message ends and never began", errMalformed)
	case d.resp.RawFinish == "":
		return fmt.Errorf("%w: the message ends without a reason", errMalformed)
	case d.unfinished > 0:
		return fmt.Errorf("%w: the message ends inside a call", errMalformed)
	}
	d.stopped = true
	return nil
}

// message folds a whole answer.
func (d *decoder) message(body []byte) error {
	var kind, content, failure, requestID []byte
	m := wire.ScanObject(body)
	for m.Next() {
		switch string(m.Key()) {
		case "type":
			kind = m.Value()
		case "content":
			content = m.Value()
		case "error":
			failure = m.Value()
		case "request_id":
			requestID = m.Value()
		default:
			d.head(m.Key(), m.Value())
		}
	}
	if m.Err() != nil {
		return fmt.Errorf("%w: %w", errMalformed, m.Err())
	}
	if string(kind) == `"error"` || len(failure) > 0 && string(failure) != "null" {
		return newError(failure, requestID)
	}
	if kind == nil && content == nil {
		return newError(body, requestID) // not a message but an error
	}
	d.started, d.content = true, content
	return d.stopMessage()
}

// wholeBlocks applies the blocks that arrived complete.
func (d *decoder) wholeBlocks() error {
	if len(d.content) == 0 {
		return nil
	}
	blocks := wire.ScanArray(d.content)
	d.content = nil
	for i := int64(0); blocks.Next(); i++ {
		if err := d.startBlock(i, blocks.Value()); err != nil {
			return err
		}
		if err := d.stopBlock(i); err != nil {
			return err
		}
	}
	if blocks.Err() != nil {
		return fmt.Errorf("%w: %w", errMalformed, blocks.Err())
	}
	return nil
}
