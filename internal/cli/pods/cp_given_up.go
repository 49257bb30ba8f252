// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// keptFor is how long the parts of a copy into a container stay there for sure, when nobody goes on with it: the next
// copy into the same folder takes older ones away.
const keptFor = 10 * time.Minute

// givenUp is the folder in which tokens of copies into containers are kept while they are in progress, so that the same
// command goes on with one that was given up; "" is none. Nothing depends on it but time: what is there is compared by
// its checksum.
type givenUp string

// newGivenUp is the folder of the user.
func newGivenUp() givenUp {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return givenUp(filepath.Join(cache, "wherry", "copies"))
}

// of is the file of one copy, by what makes it the same; "" is none.
func (g givenUp) of(pod string, more ...string) tokenFile {
	if g == "" || pod == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(pod + "\x00" + strings.Join(more, "\x00")))
	return tokenFile(filepath.Join(string(g), fmt.Sprintf("%x", sum[:16])))
}

// tokenFile has the token of a copy.
type tokenFile string

// validToken is what a token looks like: crypto/rand.Text.
var validToken = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// recall is the token of the same copy that was given up a short time ago; "" is none. Another command may be at it: it
// keeps the parts locked, and who comes copies them.
func (t tokenFile) recall(now time.Time) string {
	if t == "" {
		return ""
	}
	info, err := os.Lstat(string(t))
	if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) > keptFor {
		return ""
	}
	text, err := os.ReadFile(string(t))
	if err != nil || !validToken.Match(text) {
		return ""
	}
	return string(text)
}

// keep notes a token.
func (t tokenFile) keep(token string) error {
	if t == "" {
		return errors.ErrUnsupported
	}
	if err := os.MkdirAll(filepath.Dir(string(t)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(string(t), []byte(token), 0o600)
}

// forget is for a copy that is over.
func (t tokenFile) forget() {
	if t != "" {
		_ = os.Remove(string(t)) // it may never have been there
	}
}
