package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// attachment is a file that is sent with an input, or one that another run was given with
// its input. Its type is what its first bytes say.
type attachment struct {
	Name string `json:"name,omitempty" jsonschema:"the file's name"`
	Data []byte `json:"data,omitempty" jsonschema:"the file's content, in base64"`
	Run  string `json:"run,omitempty" jsonschema:"the id of the run whose attachment it is, in place of name and data"`
	// Index is its place among the attachments of Run.
	Index int `json:"index,omitempty" jsonschema:"its place among the attachments of run, from 0"`
}

// attached returns the files of a start.
func (s *Server) attached(ctx context.Context, all []attachment) (media []llm.Media, err error) {
	var sizes attach.Sizes
	given := map[string][]llm.Media{}
	for i, a := range all {
		wrong := func(next, format string, args ...any) error {
			return kindBody.problem(next, format, args...).at(fmt.Sprintf("/attachments/%d", i))
		}
		if a.Run != "" {
			if a.Name != "" || a.Data != nil {
				return nil, wrong("give name and data, or run and index", "run and index stand for a name and its data")
			}
			if _, read := given[a.Run]; !read {
				if given[a.Run], err = s.givenTo(ctx, a.Run); errors.Is(err, journal.ErrNotFound) {
					return nil, wrong("list the runs at /v1/runs", "there is no run %q", a.Run)
				} else if err != nil {
					return nil, err
				}
			}
			if a.Index < 0 || a.Index >= len(given[a.Run]) {
				return nil, wrong("count its attachments from 0", "run %s was given %d attachments", a.Run, len(given[a.Run]))
			}
			m := given[a.Run][a.Index]
			a.Name, a.Data = m.Name, m.Data
		}
		m, err := attach.Data(a.Name, a.Data)
		if err == nil {
			err = sizes.Add(&m)
		}
		if err != nil {
			return nil, wrong("send an image, a PDF or a text", "%s %s", a.Name, control.Plain(err))
		}
		media = append(media, m)
	}
	return media, nil
}

// givenTo returns the attachments of a run's input, from the journal.
func (s *Server) givenTo(ctx context.Context, run string) ([]llm.Media, error) {
	first, err := drive.At[event.RunStarted](ctx, s.store, run, 0)
	if err != nil || first.Input == nil {
		return nil, err
	}
	whole, err := drive.NewBlobs(s.store).Attach(ctx, first)
	if err != nil {
		return nil, err
	}
	return slices.Collect(whole.(event.RunStarted).Input.Parts.Media()), nil
}
