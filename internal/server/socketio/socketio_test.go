package socketio_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/internal/server/socketio"
)

// number is the number of an acknowledgement.
func number(n uint64) *uint64 { return &n }

// decoded are the packets that frames are.
func decoded(limit int, frames ...socketio.Frame) (packets []socketio.Packet, err error) {
	d := socketio.Decoder{Limit: limit}
	for _, f := range frames {
		p, whole, err := d.Add(f)
		if err != nil {
			return packets, err
		}
		if whole {
			packets = append(packets, p)
		}
	}
	return packets, nil
}

// The examples are those of the protocol's document.
func TestAPacketIsWrittenAsTheProtocolSays(t *testing.T) {
	for text, want := range map[string]socketio.Packet{
		`0`:                                      {Type: socketio.Connect, Namespace: "/"},
		`0/admin,{"sid":"oSO0OpakMV_3jnilAAAA"}`: {Type: socketio.Connect, Namespace: "/admin", Data: json.RawMessage(`{"sid":"oSO0OpakMV_3jnilAAAA"}`)},
		`4{"message":"Not authorized"}`:          {Type: socketio.ConnectError, Namespace: "/", Data: json.RawMessage(`{"message":"Not authorized"}`)},
		`2["foo"]`:                               {Type: socketio.Event, Namespace: "/", Data: json.RawMessage(`["foo"]`)},
		`2/admin,["bar"]`:                        {Type: socketio.Event, Namespace: "/admin", Data: json.RawMessage(`["bar"]`)},
		`212["foo"]`:                             {Type: socketio.Event, Namespace: "/", ID: number(12), Data: json.RawMessage(`["foo"]`)},
		`3/admin,13["bar"]`:                      {Type: socketio.Ack, Namespace: "/admin", ID: number(13), Data: json.RawMessage(`["bar"]`)},
		`1/admin,`:                               {Type: socketio.Disconnect, Namespace: "/admin"},
		`52-/admin,["baz",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`: {
			Type: socketio.BinaryEvent, Namespace: "/admin", Attachments: [][]byte{{1, 2}, {3}},
			Data: json.RawMessage(`["baz",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`),
		},
		`61-15["bar",{"_placeholder":true,"num":0}]`: {
			Type: socketio.BinaryAck, Namespace: "/", ID: number(15), Attachments: [][]byte{{9}}, Data: json.RawMessage(`["bar",{"_placeholder":true,"num":0}]`),
		},
	} {
		frames := want.Frames()
		if got := string(frames[0].Data); got != text {
			t.Errorf("%s is written as %s", text, got)
		}
		got, err := decoded(0, frames...)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff([]socketio.Packet{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if got, err := decoded(0, socketio.Message([]byte("0/custom"))); err != nil || got[0].Namespace != "/custom" {
		t.Errorf("a namespace without a comma is %+v: %v", got, err)
	}
}

func TestWhatIsNoPacketIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "9", "abc", "2", "2{}", "2[]", "2[1]", "2[null]", `2["a"`, `2["a"]x`, `2abc["a"]`, `299999999999999999999["a"]`, "0[]", "0x", `1{"a":1}`, `3["a"]`, `31{}`,
		`5["a"]`, `50-["a"]`, `517-["a"]`, `5-1["a"]`, `5x-["a"]`, `4[]`, "2" + strings.Repeat("[", 20_000),
	} {
		if got, err := decoded(0, socketio.Message([]byte(text))); !errors.Is(err, socketio.ErrInvalid) {
			t.Errorf("%.40s is %+v: %v", text, got, err)
		}
	}
	event := socketio.Message([]byte(`52-["a"]`))
	for name, frames := range map[string][]socketio.Frame{
		"an attachment of nothing":           {socketio.Binary([]byte{1})},
		"a text where one is missing":        {event, socketio.Binary([]byte{1}), socketio.Message([]byte(`2["a"]`))},
		"more bytes than there may be":       {event, socketio.Binary([]byte{1, 2, 3}), socketio.Binary([]byte{4, 5})},
		"an attachment more than were said":  {event, socketio.Binary(nil), socketio.Binary(nil), socketio.Binary(nil)},
		"more bytes after a packet of them ": {event, socketio.Binary([]byte{1, 2}), socketio.Binary([]byte{4, 5}), event, socketio.Binary([]byte{1, 2, 3, 4, 5})},
	} {
		if _, err := decoded(4, frames...); !errors.Is(err, socketio.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The example is that of the protocol's document.
func TestAPayloadIsItsFrames(t *testing.T) {
	frames := []socketio.Frame{socketio.Message([]byte("hello")), {Type: socketio.FramePing}, socketio.Binary([]byte{1, 2, 3, 4})}
	body := socketio.Payload(frames)
	if string(body) != "4hello\x1e2\x1ebAQIDBA==" {
		t.Errorf("the payload is %q", body)
	}
	got, err := socketio.ParsePayload(body)
	frames[1].Data = []byte{}
	if diff := cmp.Diff(frames, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, body := range []string{"", "abc", "4a\x1e", "\x1e", "b*", "7", "4\xff"} {
		if got, err := socketio.ParsePayload([]byte(body)); !errors.Is(err, socketio.ErrInvalid) {
			t.Errorf("%q is %+v: %v", body, got, err)
		}
	}
}

// Whatever is read is written as what is read as the same again.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{"4hello\x1e2\x1ebAQIDBA==", `42["a",{"b":[1]}]`, `452-/x,1["a"]` + "\x1eb\x1eb", "40/custom", `461-15["bar"]` + "\x1ebAA==", "4\xff", "b\r\nAA=="} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		frames, err := socketio.ParsePayload(body)
		if err != nil {
			return
		}
		again, err := socketio.ParsePayload(socketio.Payload(frames))
		if diff := cmp.Diff(frames, again, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%v (-first +second):\n%s", err, diff)
		}
		packets, err := decoded(1000, frames...)
		if err != nil {
			return
		}
		var out []socketio.Frame
		for _, p := range packets {
			out = append(out, p.Frames()...)
		}
		rest, err := decoded(1000, out...)
		if diff := cmp.Diff(packets, rest, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%v (-first +second):\n%s", err, diff)
		}
	})
}
