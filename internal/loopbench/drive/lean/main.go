// Command lean drives the lean loop. With a folder it appends 4 KiB to a file there and
// syncs it twice a turn, which is the least that a durable loop can do.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/pawlrun/pawl/internal/loopbench/drive"
	"github.com/pawlrun/pawl/internal/loopbench/lean"
)

const (
	ms   = `"ms":{"type":"integer","description":"how long to wait in ms"}},"additionalProperties":false,"required":`
	head = `{"model":"` + drive.Model + `","stream":true,"tools":[` +
		`{"type":"function","function":{"name":"` + drive.EchoName + `","description":"` + drive.EchoDoes + `","parameters":{"type":"object","properties":{"text":{"type":"string","description":"what is to be said"},` + ms + `["text","ms"]}}},` +
		`{"type":"function","function":{"name":"` + drive.SumName + `","description":"` + drive.SumDoes + `","parameters":{"type":"object","properties":{"a":{"type":"integer","description":"the one number"},"b":{"type":"integer","description":"the other number"},` + ms + `["a","b","ms"]}}}],` +
		`"messages":[{"role":"system","content":"` + drive.System + `"},{"role":"user","content":`
)

func main() {
	drive.Main(func(o drive.Order) (drive.Run, error) {
		transport := http.DefaultTransport.(*http.Transport)
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1<<20
		l := lean.Loop{Client: &http.Client{Transport: transport}, URL: o.URL, Head: head, Tool: call, OnText: drive.Show}
		if o.Dir != "" {
			file, err := os.CreateTemp(o.Dir, "lean-")
			if err != nil {
				return nil, err
			}
			page := make([]byte, 4<<10)
			l.Keep = func() error {
				if _, err := file.Write(page); err != nil {
					return err
				}
				return file.Sync()
			}
		}
		return l.Run, nil
	})
}

func call(name, args []byte) (string, error) {
	number := func(value []byte) int { n, _ := strconv.Atoi(string(value)); return n }
	var echo drive.Echo
	var sum drive.Sum
	for member, value := range lean.Members(args) {
		switch string(member) {
		case "text":
			echo.Text = lean.Text(value)
		case "a":
			sum.A = number(value)
		case "b":
			sum.B = number(value)
		case "ms":
			echo.MS, sum.MS = number(value), number(value)
		}
	}
	switch string(name) {
	case drive.EchoName:
		return echo.Do()
	case drive.SumName:
		return sum.Do()
	}
	return "", fmt.Errorf("there is no tool %s", name)
}
