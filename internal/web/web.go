// Package web is the page of the server: one document and the files that it needs,
// all in the binary. They hold no data; what the page shows it asks the API for.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
)

// dist is what 'make web' builds from src.
//
//go:embed dist
var dist embed.FS

// Assets is the path that the page's files have in front of their names.
const Assets = "/assets/"

// policy lets the page load its own files and ask its own server, and nothing else: no
// other origin, no script or style in the document, no text that becomes markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const document = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pawl</title>
<link rel="icon" type="image/svg+xml" href="/assets/%s">
<link rel="stylesheet" href="/assets/%s">
<script type="module" src="/assets/%s"></script>
</head>
<body><div id="app"></div><noscript>This page needs JavaScript. 'pawl runs' shows the same in a terminal.</noscript></body>
</html>
`

// Page is the document and its files. It is safe for concurrent use.
type Page struct {
	index file
	files map[string]file
}

// file is a file as it is sent.
type file struct {
	kind, tag, cache string
	plain, zipped    []byte
}

// hashed are the names that stand for one content for ever.
var hashed = regexp.MustCompile(`^(.+)-[0-9A-Z]{8}(\.[a-z]+)$`)

// Load reads the page out of the binary.
func Load() (*Page, error) {
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	p, names := &Page{files: map[string]file{}}, map[string]string{}
	for _, entry := range entries {
		body, err := fs.ReadFile(dist, path.Join("dist", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("web: %w", err)
		}
		cache := "no-cache"
		if parts := hashed.FindStringSubmatch(entry.Name()); parts != nil {
			cache, names[parts[1]+parts[2]] = "public, max-age=31536000, immutable", entry.Name()
		}
		if p.files[entry.Name()], err = newFile(mime.TypeByExtension(path.Ext(entry.Name())), cache, body); err != nil {
			return nil, err
		}
	}
	if err := p.countedIcons(names["icon.svg"]); err != nil {
		return nil, err
	}
	for _, needed := range []string{"icon.svg", "main.css", "main.js"} {
		if names[needed] == "" {
			return nil, fmt.Errorf("web: the page was built without %s; 'make web' builds it", needed)
		}
	}
	p.index, err = newFile("text/html; charset=utf-8", "no-cache", fmt.Appendf(nil, document, names["icon.svg"], names["main.css"], names["main.js"]))
	return p, err
}

// countedIcons adds the icons that show how many questions wait.
func (p *Page) countedIcons(plain string) (err error) {
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "more"} {
		badge := `<circle cx="22" cy="22" r="10" fill="#a6231c"/><text x="22" y="27" font-size="15" font-family="sans-serif" font-weight="700" text-anchor="middle" fill="#fff">` +
			strings.ReplaceAll(n, "more", "+") + `</text></svg>`
		icon := strings.Replace(string(p.files[plain].plain), "</svg>", badge, 1)
		if p.files["icon-waits-"+n+".svg"], err = newFile("image/svg+xml", "no-cache", []byte(icon)); err != nil {
			return err
		}
	}
	return nil
}

func newFile(kind, cache string, body []byte) (file, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return file{}, fmt.Errorf("web: %w", err)
	}
	sum := sha256.Sum256(body)
	return file{kind: kind, cache: cache, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, plain: body, zipped: zipped.Bytes()}, nil
}

// Index answers with the document.
func (p *Page) Index(w http.ResponseWriter, r *http.Request) { p.index.send(w, r) }

// Asset answers with one of the document's files, and reports whether there is one of
// that name.
func (p *Page) Asset(w http.ResponseWriter, r *http.Request, name string) bool {
	f, known := p.files[name]
	if known {
		f.send(w, r)
	}
	return known
}

func (f file) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", f.cache)
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a reader that has gone needs no more
	}
}
