// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/names"
	"github.com/wherryproject/wherry/internal/names/asked"
)

// Protocol is the version of all this.
const Protocol = 1

// Word is the subcommand that the resolver is. cmd/wherry-short/entry knows it too.
const Word = "resolve-names"

// What is wanted.
const (
	Feed     = "feed"
	Asked    = "asked"     // what a pod has asked: an answer, and the end
	HandOver = "hand-over" // the sockets, for a resolver that takes over; the other one ends
	End      = "end"
)

// Want opens a connection.
type Want struct {
	What string `json:"what"`
	Pod  string `json:"pod,omitempty"` // its UID
}

// Hello says who answers.
type Hello struct {
	Protocol int            `json:"protocol"`
	Program  string         `json:"program"` // identifies the build
	PID      int            `json:"pid"`
	Address  netip.AddrPort `json:"address"` // where pods are answered, over UDP and TCP
}

// Settings are the server's.
type Settings struct {
	Zone names.Zone `json:"zone"`
	// Service is the address that pods ask, which nobody may ask back.
	Service    netip.Addr `json:"service"`
	ResolvConf string     `json:"resolvConf"`
	// NoBook: what pods ask is not remembered.
	NoBook bool `json:"noBook,omitempty"`
}

// Line is what the server says; one of these.
type Line struct {
	Settings *Settings       `json:"settings,omitempty"`
	Address  *netip.AddrPort `json:"address,omitempty"` // in the file only: where pods were answered
	Begin    bool            `json:"begin,omitempty"`
	Change   *names.Change   `json:"change,omitempty"`
	End      bool            `json:"end,omitempty"`
}

// Notice is what the resolver sends.
type Notice struct {
	Trouble string `json:"trouble,omitempty"` // for people
}

// Answer is what a pod has asked.
type Answer struct {
	Asked []asked.Asked `json:"asked"`
	Off   bool          `json:"off,omitempty"` // nothing is remembered
}

// maxLine bounds a line: an endpoint slice has up to a thousand endpoints.
const maxLine = 4 << 20

// Reader reads lines.
type Reader struct{ scanner *bufio.Scanner }

// NewReader reads from r.
func NewReader(r io.Reader) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4<<10), maxLine)
	return &Reader{s}
}

// Read reads a line into v; io.EOF at the end.
func (r *Reader) Read(v any) error {
	if !r.scanner.Scan() {
		if err := r.scanner.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	if err := json.Unmarshal(r.scanner.Bytes(), v); err != nil {
		return fmt.Errorf("a line that is not of the resolver's protocol: %w", err)
	}
	return nil
}

// Write writes a line.
func Write(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Picture is what a resolver's file holds.
type Picture struct {
	Settings Settings
	Address  netip.AddrPort
	World    *names.World
}

// ErrNoPicture is a file that was cut off or is not one.
var ErrNoPicture = errors.New("no whole picture")

// ReadPicture reads the file.
func ReadPicture(r io.Reader) (p Picture, err error) {
	lines := NewReader(r)
	for {
		var l Line
		switch err := lines.Read(&l); {
		case errors.Is(err, io.EOF):
			return p, ErrNoPicture
		case err != nil:
			return p, err
		}
		switch {
		case l.Settings != nil:
			p.Settings = *l.Settings
		case l.Address != nil:
			p.Address = *l.Address
		case l.Begin:
			p.World = names.New(p.Settings.Zone)
		case l.Change != nil && p.World != nil:
			p.World.Apply(*l.Change)
		case l.End && p.World != nil:
			return p, nil
		}
	}
}

// WritePicture writes it.
func WritePicture(w io.Writer, p Picture) error {
	buffer := bufio.NewWriter(w)
	if err := errors.Join(Write(buffer, Line{Settings: &p.Settings}), Write(buffer, Line{Address: &p.Address}),
		Write(buffer, Line{Begin: true})); err != nil {
		return err
	}
	for _, c := range p.World.All() {
		if err := Write(buffer, Line{Change: &c}); err != nil {
			return err
		}
	}
	if err := Write(buffer, Line{End: true}); err != nil {
		return err
	}
	return buffer.Flush()
}

// Dir is the resolver's folder in a data folder, Socket its socket in there.
func Dir(dataDir string) string { return filepath.Join(dataDir, "names") }

// Socket is where a resolver is spoken to.
func Socket(dir string) string { return filepath.Join(dir, "sock") }

// Lock is the file that a resolver holds locked to its very end. It is never removed but with the folder.
func Lock(dir string) string { return filepath.Join(dir, "lock") }
