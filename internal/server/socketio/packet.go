package socketio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// PacketType is the type of a Socket.IO packet.
type PacketType byte

// The types of packets, as they are written.
const (
	Connect      PacketType = '0'
	Disconnect   PacketType = '1'
	Event        PacketType = '2'
	Ack          PacketType = '3'
	ConnectError PacketType = '4'
	BinaryEvent  PacketType = '5'
	BinaryAck    PacketType = '6'
)

// MainNamespace is the default namespace, which packets omit.
const MainNamespace = "/"

// MaxAttachments bounds the attachments of a packet.
const MaxAttachments = 16

// Packet is a Socket.IO packet.
type Packet struct {
	Type      PacketType
	Namespace string
	// ID is the number of the acknowledgement that is requested or given, nil for
	// none.
	ID *uint64
	// Data is JSON, nil for none: an array for events and acknowledgements, with
	// placeholders for the attachments.
	Data json.RawMessage
	// Attachments holds the values of the placeholders.
	Attachments [][]byte
}

// Frames returns the frames of a packet.
func (p Packet) Frames() []Frame {
	frames := []Frame{Message(p.text())}
	for _, a := range p.Attachments {
		frames = append(frames, Binary(a))
	}
	return frames
}

func (p Packet) text() []byte {
	out := []byte{byte(p.Type)}
	if p.Type == BinaryEvent || p.Type == BinaryAck {
		out = append(strconv.AppendInt(out, int64(len(p.Attachments)), 10), '-')
	}
	if p.Namespace != MainNamespace {
		out = append(append(out, p.Namespace...), ',')
	}
	if p.ID != nil {
		out = strconv.AppendUint(out, *p.ID, 10)
	}
	return append(out, p.Data...)
}

// parsePacket parses the text of a packet, and returns how many attachments follow.
func parsePacket(text []byte) (p Packet, attachments int, err error) {
	if len(text) == 0 {
		return p, 0, fmt.Errorf("%w: it is empty", ErrInvalid)
	}
	p.Type, p.Namespace, text = PacketType(text[0]), MainNamespace, text[1:]
	if p.Type == BinaryEvent || p.Type == BinaryAck {
		count, rest, found := bytes.Cut(text, []byte{'-'})
		n, err := strconv.ParseUint(string(count), 10, 16)
		if !found || err != nil || n == 0 || n > MaxAttachments {
			return p, 0, fmt.Errorf("%w: a binary packet has 1 to %d attachments", ErrInvalid, MaxAttachments)
		}
		attachments, text = int(n), rest
	}
	if len(text) > 0 && text[0] == '/' {
		name, rest, _ := bytes.Cut(text, []byte{','})
		p.Namespace, text = string(name), rest
	}
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	if digits > 0 {
		id, err := strconv.ParseUint(string(text[:digits]), 10, 64)
		if err != nil {
			return p, 0, fmt.Errorf("%w: the number of an acknowledgement is too large", ErrInvalid)
		}
		p.ID, text = &id, text[digits:]
	}
	if len(text) > 0 {
		p.Data = slices.Clone(text)
	}
	return p, attachments, p.check()
}

// check validates the data of a packet.
func (p Packet) check() error {
	if p.Data != nil && !json.Valid(p.Data) {
		return fmt.Errorf("%w: the data is not JSON", ErrInvalid)
	}
	switch p.Type {
	case Connect, ConnectError:
		if p.Data != nil && !p.begins('{') {
			return fmt.Errorf("%w: the data of a connect is not an object", ErrInvalid)
		}
	case Disconnect:
		if p.Data != nil {
			return fmt.Errorf("%w: a disconnect has no data", ErrInvalid)
		}
	case Event, BinaryEvent:
		_, _, err := p.Event()
		return err
	case Ack, BinaryAck:
		if !p.begins('[') || p.ID == nil {
			return fmt.Errorf("%w: an acknowledgement has a number and an array", ErrInvalid)
		}
	default:
		return fmt.Errorf("%w: no packet begins with %q", ErrInvalid, byte(p.Type))
	}
	return nil
}

func (p Packet) begins(with byte) bool {
	data := bytes.TrimLeft(p.Data, " \t\r\n")
	return len(data) > 0 && data[0] == with
}

// Event returns the name of an event and its arguments.
func (p Packet) Event() (name string, args []json.RawMessage, err error) {
	var all []json.RawMessage
	if err := json.Unmarshal(p.Data, &all); err != nil || len(all) == 0 || json.Unmarshal(all[0], &name) != nil || all[0][0] != '"' {
		return "", nil, fmt.Errorf("%w: the data of an event is not an array that begins with its name", ErrInvalid)
	}
	return name, all[1:], nil
}

// NewEvent returns an event for a namespace. The error is that of JSON.
func NewEvent(namespace, name string, args ...any) (Packet, error) {
	data, err := json.Marshal(append([]any{name}, args...))
	if err != nil {
		return Packet{}, fmt.Errorf("socketio: event %s: %w", name, err)
	}
	return Packet{Type: Event, Namespace: namespace, Data: data}, nil
}

// Decoder assembles the packets of one client from message frames in order.
type Decoder struct {
	// Limit bounds the bytes of a packet's attachments, 0 for no limit.
	Limit int
	// pending is a packet with missing attachments; size counts the bytes of the
	// others.
	pending       Packet
	missing, size int
}

// Add adds a frame, and reports whether it completes a packet.
func (d *Decoder) Add(f Frame) (p Packet, whole bool, err error) {
	switch {
	case f.Binary && d.missing == 0:
		return p, false, fmt.Errorf("%w: an attachment belongs to none", ErrInvalid)
	case f.Binary:
		if d.size += len(f.Data); d.Limit > 0 && d.size > d.Limit {
			return p, false, fmt.Errorf("%w: the attachments have more than %d bytes", ErrInvalid, d.Limit)
		}
		d.missing--
		d.pending.Attachments = append(d.pending.Attachments, slices.Clone(f.Data))
		return d.pending, d.missing == 0, nil
	case d.missing > 0:
		return p, false, fmt.Errorf("%w: %d attachments are missing", ErrInvalid, d.missing)
	}
	d.size = 0
	d.pending, d.missing, err = parsePacket(f.Data)
	return d.pending, err == nil && d.missing == 0, err
}
