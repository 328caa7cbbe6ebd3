package fs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
)

// open opens a regular file. It rejects anything else before and after opening it:
// opening a pipe would wait for a writer.
func (w *Workspace) open(p string, flag int) (*os.File, os.FileInfo, error) {
	info, err := w.root.Stat(p)
	if err != nil {
		return nil, nil, explain(p, err)
	}
	if err := regular(p, info); err != nil {
		return nil, nil, err
	}
	f, err := w.root.OpenFile(p, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, explain(p, err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(p, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func regular(p string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return invalid("%s is a directory", quote(p))
	case !info.Mode().IsRegular():
		return invalid("%s is not a regular file", quote(p))
	}
	return nil
}

// load reads a whole file of at most limit bytes.
func load(ctx context.Context, p string, f *os.File, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil {
		b.Grow(int(min(info.Size(), limit)) + bytes.MinRead)
	}
	n, err := io.Copy(&b, io.LimitReader(cancellable{ctx, f}, limit+1))
	if err != nil {
		return nil, explain(p, err)
	}
	if n > limit {
		return nil, fmt.Errorf("%s is larger than the %d bytes that this tool works on", quote(p), limit)
	}
	return b.Bytes(), nil
}

// cancellable ends a long read soon after its context.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// isBinary applies git's rule: a NUL byte near the beginning.
func isBinary(start []byte) bool {
	return bytes.IndexByte(start[:min(len(start), sniff)], 0) >= 0
}

const sniff = 8000
