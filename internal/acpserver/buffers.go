package acpserver

import (
	"context"
	"path/filepath"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/tool/fs"
)

// buffers are the files of a session as the editor has them.
type buffers struct {
	server  *Server
	session acp.SessionId
}

// buffersIn returns the buffers of the editor for a workspace: those of a session that is
// open there. It returns nil if the editor does not both read and write files, because a
// text that is read from a buffer and written to the disk would lose changes.
func (s *Server) buffersIn(workspace string) fs.Buffers {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.buffers {
		return nil
	}
	for id, o := range s.open {
		if filepath.Clean(o.dir) == filepath.Clean(workspace) {
			return buffers{s, id}
		}
	}
	return nil
}

// Text implements [fs.Buffers].
func (b buffers) Text(ctx context.Context, path string) (string, error) {
	r, err := b.server.conn.ReadTextFile(ctx, acp.ReadTextFileRequest{SessionId: b.session, Path: path})
	return r.Content, err
}

// SetText implements [fs.Buffers].
func (b buffers) SetText(ctx context.Context, path, text string) error {
	_, err := b.server.conn.WriteTextFile(ctx, acp.WriteTextFileRequest{SessionId: b.session, Path: path, Content: text})
	return err
}
