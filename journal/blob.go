package journal

import (
	"crypto/sha256"
	"encoding/hex"
)

// digestPrefix says how the rest of a digest was made.
const digestPrefix = "sha256-"

// Digest identifies content: "sha256-" and the hash in hexadecimal digits.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// NewBlob is content under its own digest.
func NewBlob(content []byte) Blob { return Blob{Digest: Digest(content), Bytes: content} }

// Intact says that content is what its digest says.
func (b Blob) Intact() bool { return b.Digest == Digest(b.Bytes) }
