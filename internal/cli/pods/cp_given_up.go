// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// keptFor is how long the same command goes on with a copy into a container that was given up. Its parts stay there for
// longer (the toolbox's staleAge), for they count from the last byte.
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

// tokenFile has what the same command needs to go on with a copy.
type tokenFile string

// begunCopy is what is kept of a copy.
type begunCopy struct {
	token string // of its parts; "" is none
	// folder is where it goes to and name what it is called there, by what the other side said when it began: what was
	// a name to it then may be a folder by now, which the copy itself has made. "" until the other side has told.
	folder, name string
}

// text is what stands in the file: no path has a zero byte, and one may be no text at all.
func (b begunCopy) text() string { return b.token + "\x00" + b.folder + "\x00" + b.name }

// validToken is what a token looks like: crypto/rand.Text.
var validToken = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// recall is what is kept of the same copy that was given up a short time ago; without a token there is none. Another
// command may be at it: it keeps the parts locked, and who comes copies them.
func (t tokenFile) recall(now time.Time) begunCopy {
	if t == "" {
		return begunCopy{}
	}
	info, err := os.Lstat(string(t))
	if err != nil || !info.Mode().IsRegular() || expired(info, now) {
		return begunCopy{}
	}
	text, err := os.ReadFile(string(t))
	if err != nil {
		return begunCopy{}
	}
	parts := strings.Split(string(text), "\x00")
	if len(parts) != 3 || !validToken.MatchString(parts[0]) || (parts[1] == "") != (parts[2] == "") {
		return begunCopy{}
	}
	return begunCopy{token: parts[0], folder: parts[1], name: parts[2]}
}

// expired reports whether a token's parts may be gone.
func expired(info fs.FileInfo, now time.Time) bool { return now.Sub(info.ModTime()) > keptFor }

// keep notes a copy, and takes away what is of no use any more: commands that are never repeated leave their tokens.
func (t tokenFile) keep(b begunCopy, now time.Time) error {
	if t == "" {
		return errors.ErrUnsupported
	}
	dir := filepath.Dir(string(t))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if others, err := os.ReadDir(dir); err == nil {
		for _, other := range others {
			if info, err := other.Info(); err == nil && info.Mode().IsRegular() && expired(info, now) {
				_ = os.Remove(filepath.Join(dir, other.Name())) // another command may have done so
			}
		}
	}
	return os.WriteFile(string(t), []byte(b.text()), 0o600)
}

// forget is for a copy that is over.
func (t tokenFile) forget() {
	if t != "" {
		_ = os.Remove(string(t)) // it may never have been there
	}
}
