// Package socketio implements the wire format of Socket.IO 5 and of Engine.IO 4
// below it: it converts between bytes and packets, without a connection. Package
// socketio/session has the connections.
//
// An Engine.IO packet ([Frame]) is what one WebSocket message carries, or a part of
// the body of one HTTP request (a payload). A Socket.IO packet ([Packet]) is the data
// of a message frame, followed by a binary frame for each of its attachments.
package socketio

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrInvalid is returned for an invalid packet.
var ErrInvalid = errors.New("socketio: not a packet")

// FrameType is the type of a frame.
type FrameType byte

// The types of frames, as they are written.
const (
	FrameOpen    FrameType = '0'
	FrameClose   FrameType = '1'
	FramePing    FrameType = '2'
	FramePong    FrameType = '3'
	FrameMessage FrameType = '4'
	FrameUpgrade FrameType = '5'
	FrameNoop    FrameType = '6'
)

// Frame is an Engine.IO packet. A binary one is a message.
type Frame struct {
	Type   FrameType
	Data   []byte
	Binary bool
}

// Message returns a frame with a text.
func Message(text []byte) Frame { return Frame{Type: FrameMessage, Data: text} }

// Binary returns a frame with bytes.
func Binary(data []byte) Frame { return Frame{Type: FrameMessage, Data: data, Binary: true} }

// Text returns a frame as a text message of a WebSocket. A binary frame is sent as
// its data.
func (f Frame) Text() []byte {
	return append(append(make([]byte, 0, 1+len(f.Data)), byte(f.Type)), f.Data...)
}

// ParseFrame parses a text message of a WebSocket.
func ParseFrame(text []byte) (Frame, error) {
	switch {
	case len(text) == 0:
		return Frame{}, fmt.Errorf("%w: it is empty", ErrInvalid)
	case text[0] < byte(FrameOpen) || text[0] > byte(FrameNoop):
		return Frame{}, fmt.Errorf("%w: no frame begins with %q", ErrInvalid, text[0])
	case !utf8.Valid(text):
		return Frame{}, fmt.Errorf("%w: a text is not UTF-8", ErrInvalid)
	}
	return Frame{Type: FrameType(text[0]), Data: text[1:]}, nil
}

const (
	// separator separates the frames of a payload.
	separator = '\x1e'
	// binaryPrefix starts a binary frame in a payload; base64 follows.
	binaryPrefix = 'b'
)

// Payload encodes frames as the body of a request or an answer.
func Payload(frames []Frame) []byte {
	var out []byte
	for i, f := range frames {
		if i > 0 {
			out = append(out, separator)
		}
		if f.Binary {
			out = base64.StdEncoding.AppendEncode(append(out, binaryPrefix), f.Data)
			continue
		}
		out = append(append(out, byte(f.Type)), f.Data...)
	}
	return out
}

// ParsePayload parses the body of a request, which has at least one frame.
func ParsePayload(body []byte) ([]Frame, error) {
	var frames []Frame
	for part := range bytes.SplitSeq(body, []byte{separator}) {
		f, err := parsePart(part)
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
	}
	return frames, nil
}

func parsePart(part []byte) (Frame, error) {
	if len(part) == 0 || part[0] != binaryPrefix {
		return ParseFrame(part)
	}
	data, err := base64.StdEncoding.AppendDecode(nil, part[1:])
	if err != nil {
		return Frame{}, fmt.Errorf("%w: binary data in a payload is not base64", ErrInvalid)
	}
	return Binary(data), nil
}
