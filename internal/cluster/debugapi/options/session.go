// SPDX-License-Identifier: Apache-2.0

package options

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// Session is what an agent is asked for, without whom it is for and in which pod. An error is for the client.
func (o *Shell) Session(l Limits) (wire.Session, error) {
	s := wire.Session{As: wire.Shell, Container: o.Container, Image: o.Image, Command: o.Command, Profile: o.Profile,
		User: o.User, Writable: o.Writable}
	if s.Profile == "" {
		s.Profile = DefaultProfile
	}
	if !slices.Contains(debugask.Profiles(), s.Profile) {
		return s, fmt.Errorf("%s %.100q is unknown: choose one of %s", wire.ParamProfile, o.Profile,
			strings.Join(debugask.Profiles(), ", "))
	}
	user, err := userOf(o.User)
	if err != nil {
		return s, err
	}
	if s.Profile == profileRestricted {
		switch {
		case user == nil:
			s.User = nobody
		case user.UID == 0:
			return s, fmt.Errorf("%s %s is root, and %s %s is for others: leave one of them out", wire.ParamUser,
				o.User, wire.ParamProfile, s.Profile)
		}
	}
	return complete(s, o.Streams, o.Bounds, l)
}

// DefaultProfile is what a shell may do that nobody has chosen a profile for.
const DefaultProfile = "general"

// profileRestricted is the profile of debuggers that are not root, and nobody whom they run as.
const (
	profileRestricted = "restricted"
	nobody            = "65534:65534"
)

// Session is what an agent is asked for, without whom it is for and in which pod. An error is for the client.
func (o *Exec) Session(l Limits) (wire.Session, error) {
	s := wire.Session{As: wire.Exec, Container: o.Container, Image: o.Image, Command: o.Command, User: o.User,
		Writable: o.Writable}
	if o.Image == "" {
		return s, fmt.Errorf("%s is missing: name the image that the command is run from", wire.ParamImage)
	}
	if _, err := userOf(o.User); err != nil {
		return s, err
	}
	return complete(s, o.Streams, o.Bounds, l)
}

// The program of the toolbox that packs files and unpacks them.
const (
	toolbox = "/bin/toolbox"
	pack    = "cp-pack"
	unpack  = "cp-unpack"
)

// maxPath bounds a path, in bytes: more no system call takes.
const maxPath = 4096

// maxAfter bounds a place in an archive: a path and three numbers.
const maxAfter = maxPath + 64

// Session is what an agent is asked for, without whom it is for and in which pod: the container must be set. An error
// is for the client.
func (o *Files) Session(l Limits) (wire.Session, error) {
	s := wire.Session{As: wire.Files, Container: o.Container, User: o.User, Stdout: true, Stderr: true}
	switch {
	case o.Path == "":
		return s, fmt.Errorf("%s is missing: name the file or folder in the container", wire.ParamPath)
	case len(o.Path) > maxPath:
		return s, fmt.Errorf("%s has %d bytes: at most %d are possible", wire.ParamPath, len(o.Path), maxPath)
	case strings.ContainsRune(o.Path, 0):
		return s, fmt.Errorf("%s has a zero byte, which no file's name has", wire.ParamPath)
	case len(o.After) > maxAfter || strings.ContainsRune(o.After, 0):
		return s, fmt.Errorf("%s is not a position in an archive", wire.ParamAfter)
	}
	if _, err := userOf(o.User); err != nil {
		return s, err
	}
	root := []string{"--root", "/c/" + o.Container}
	switch {
	case o.Keep != "" && (o.Op != wire.OpUnpack || !isToken(o.Keep)):
		return s, fmt.Errorf("%s is for %s %s alone, and has %d letters (A to Z) and digits (2 to 7)", wire.ParamKeep,
			wire.ParamOp, wire.OpUnpack, tokenSize)
	case o.Operation() == wire.OpPack:
		s.Command = append([]string{toolbox, pack}, root...)
		if o.Total {
			s.Command = append(s.Command, "--total")
		}
		if o.Follow {
			s.Command = append(s.Command, "--follow")
		}
		if o.After != "" {
			s.Command = append(s.Command, "--after", o.After)
		}
	case o.Op != wire.OpUnpack:
		return s, fmt.Errorf("%s %.100q is unknown: choose one of %s, %s", wire.ParamOp, o.Op, wire.OpPack,
			wire.OpUnpack)
	case o.Total || o.Follow || o.After != "":
		return s, fmt.Errorf("%s, %s and %s are for %s %s alone", wire.ParamTotal, wire.ParamFollow, wire.ParamAfter,
			wire.ParamOp, wire.OpPack)
	default:
		s.Command = append([]string{toolbox, unpack}, root...)
		s.Stdin, s.Writable = true, true
		if o.Keep != "" {
			s.Command = append(s.Command, "--keep", o.Keep)
		}
	}
	s.Command = append(s.Command, rooted(o.Path))
	return s, l.bound(o.Bounds, &s)
}

// tokenSize is the length of a token: what crypto/rand.Text makes.
const tokenSize = 26

// isToken reports whether a text is a token, which becomes a part of a file's name in the container.
func isToken(text string) bool {
	return len(text) == tokenSize && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// rooted is a path from the container's root, which cannot be taken for a flag.
func rooted(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// Operation is what is done, also by default.
func (o *Files) Operation() string {
	if o.Op == "" {
		return wire.OpPack
	}
	return o.Op
}

// Validate refuses what a request of a method cannot be about.
func (o *Sessions) Validate(method string) error {
	switch id, err := hex.DecodeString(o.Session); {
	case o.Session == "":
		return nil
	case method != "DELETE":
		return fmt.Errorf("%s is for DELETE alone: GET lists all of the pod", wire.ParamSession)
	case err != nil || len(id) != idBytes:
		return fmt.Errorf("%s %.100q is not the name of one, which has %d hexadecimal digits: wherry debug ls lists those that there are", wire.ParamSession,
			o.Session, 2*idBytes)
	}
	return nil
}

// idBytes is how many bytes a session's name stands for.
const idBytes = 6

// complete gives a session its streams and bounds, and refuses what would not fit an agent.
func complete(s wire.Session, streams Streams, b Bounds, l Limits) (wire.Session, error) {
	s.Stdin, s.Stdout, s.TTY, s.Term = streams.Stdin, streams.Stdout, streams.TTY, streams.Term
	s.Stderr = streams.Stderr && !streams.TTY // a terminal has one output
	if !s.Stdin && !s.Stdout && !s.Stderr {
		return s, fmt.Errorf("name at least one of %s, %s, %s", paramStdin, paramStdout, paramStderr)
	}
	if len(s.Term) > maxTerm {
		return s, fmt.Errorf("%s has %d bytes: at most %d are allowed", wire.ParamTerm, len(s.Term), maxTerm)
	}
	if err := image(s.Image); err != nil {
		return s, err
	}
	return s, l.bound(b, &s)
}

// maxTerm bounds the name of a terminal, in bytes.
const maxTerm = 64

func image(name string) error {
	if name == "" {
		return nil
	}
	if len(name) > debugask.MaxImage {
		return fmt.Errorf("%s has %d bytes: the name of an image may have at most %d", wire.ParamImage, len(name),
			debugask.MaxImage)
	}
	if _, err := reference.ParseAnyReference(name); err != nil {
		return fmt.Errorf("%s %q is not the name of one: %w", wire.ParamImage, name, err)
	}
	return nil
}

func userOf(text string) (*debugask.User, error) {
	user, err := debugask.ParseUser(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", wire.ParamUser, err)
	}
	return user, nil
}
