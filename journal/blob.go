package journal

import (
	"crypto/sha256"
	"encoding/hex"
)

// digestPrefix names the hash function of a digest.
const digestPrefix = "sha256-"

// Digest identifies content: "sha256-" and the hash in hexadecimal digits.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// NewBlob returns content with its digest.
func NewBlob(content []byte) Blob { return Blob{Digest: Digest(content), Bytes: content} }

// Intact reports whether the content matches its digest.
func (b Blob) Intact() bool { return b.Digest == Digest(b.Bytes) }
