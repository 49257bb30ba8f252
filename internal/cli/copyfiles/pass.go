// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Passer hands a tar stream on as it is, and knows how far it has come: where one was cut, it goes on with a second one
// such that what has been handed on is one archive, as if nothing had been cut. What cannot be taken back is not handed
// on before it is whole: an entry's header goes with the first of its data.
type Passer struct {
	to      io.Writer
	passed  int64 // bytes handed on
	reached Reached
	within  *within // the entry whose data were cut; nil: none
}

// within is a place in the data of an entry.
type within struct {
	Reached
	sparse bool
}

// tarBlock is what the parts of a tar stream are filled up to.
const tarBlock = 512

// NewPasser returns a Passer to a writer.
func NewPasser(to io.Writer) *Passer { return &Passer{to: to} }

// Reached is how far the streams have come.
func (p *Passer) Reached() Reached {
	if p.within != nil {
		return p.within.Reached
	}
	return p.reached
}

// tap is what is read of a stream, until it is handed on or forgotten.
type tap struct {
	from io.Reader
	held bytes.Buffer
}

// Read implements io.Reader.
func (t *tap) Read(b []byte) (int, error) {
	n, err := t.from.Read(b)
	t.held.Write(b[:n])
	return n, err
}

// write hands on.
func (p *Passer) write(text []byte) error {
	n, err := p.to.Write(text)
	p.passed += int64(n)
	return err
}

// hand hands on what is held.
func (p *Passer) hand(t *tap) error {
	err := p.write(t.held.Bytes())
	t.held.Reset()
	return err
}

// From reads a stream. After an error that is Cut, another one may follow that goes on from where Reached says.
func (p *Passer) From(r io.Reader) error {
	in := &tap{from: r}
	t := tar.NewReader(in)
	if p.within == nil { // what the cut stream was filled up with may have been lost with it
		if err := p.fill(); err != nil {
			return err
		}
	}
	for {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return p.end(in)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return cut{err}
		case err != nil:
			return fmt.Errorf("the tar stream is damaged: %w", err)
		}
		if p.within != nil {
			err = p.rest(h, t, in)
		} else {
			err = p.entry(h, t, in)
		}
		if err != nil {
			return err
		}
		p.within = nil
		p.reached.pass(h)
	}
}

// fill fills up to a whole block.
func (p *Passer) fill() error {
	if over := p.passed % tarBlock; over > 0 {
		return p.write(make([]byte, tarBlock-over))
	}
	return nil
}

// end hands on the archive's end, and with it what it is filled up with.
func (p *Passer) end(in *tap) error {
	if p.within != nil {
		return p.changed()
	}
	if err := p.hand(in); err != nil {
		return err
	}
	n, err := io.Copy(p.to, in.from)
	p.passed += n
	return err
}

// entry hands an entry on: as it comes, for what is read of its data is less where there are holes.
func (p *Passer) entry(h *tar.Header, content io.Reader, in *tap) error {
	_, again := h.PAXRecords[offsetRecord]
	if again {
		return fmt.Errorf("%s: the tar stream has the rest of a file that is whole", h.Name)
	}
	at := within{Reached: Reached{name: h.Name, size: h.Size, change: h.ModTime.UnixNano()},
		sparse: h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.map"] != "" ||
			h.Typeflag == tar.TypeGNUSparse}
	return p.data(&at, content, func(_ []byte) error { return p.hand(in) }, in)
}

// rest goes on with an entry that was cut: of what comes, the header and the hole in the place of what is there are not
// handed on.
func (p *Passer) rest(h *tar.Header, content io.Reader, in *tap) error {
	w := p.within
	if h.Name != w.name || h.PAXRecords[offsetRecord] != strconv.FormatInt(w.offset, 10) || h.Size != w.size {
		return p.changed()
	}
	if w.sparse {
		return fmt.Errorf("%s: the connection was lost in the middle of a file with holes, of which an archive that is handed on "+
			"cannot take the rest: copy it into a folder", w.name)
	}
	if _, err := io.CopyN(io.Discard, content, w.offset); err != nil {
		return asCut(err)
	}
	in.held.Reset()
	return p.data(w, content, func(text []byte) error {
		in.held.Reset()
		return p.write(text)
	}, in)
}

// changed says that what was begun cannot be ended.
func (p *Passer) changed() error {
	return fmt.Errorf("%s has changed while it was copied and the connection was lost: an archive that is handed on cannot begin it again",
		strings.TrimSuffix(p.within.name, "/"))
}

// data reads an entry's data and has them handed on.
func (p *Passer) data(at *within, content io.Reader, hand func(text []byte) error, in *tap) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := content.Read(buffer)
		if n > 0 {
			if werr := hand(buffer[:n]); werr != nil {
				return werr
			}
			at.offset += int64(n)
			p.within = at
		}
		switch {
		case errors.Is(err, io.EOF):
			if at.offset == 0 { // there are no data: nothing has handed its header on
				return p.hand(in)
			}
			return nil
		case err != nil:
			return asCut(err)
		}
	}
}

// asCut is an error in the middle of an entry.
func asCut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return cut{io.ErrUnexpectedEOF}
	}
	return err
}
