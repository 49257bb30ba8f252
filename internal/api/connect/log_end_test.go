// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// pieces counts the writes that it takes.
type pieces struct {
	bytes.Buffer
	writes int
}

func (p *pieces) Write(text []byte) (int, error) {
	p.writes++
	return p.Buffer.Write(text)
}

// PL-09: a long log is handed on whole, in few pieces, and its end is apart from it; a log that breaks off is not one
// that has ended.
func TestLogInLargePieces(t *testing.T) {
	text := bytes.Repeat([]byte("a line of a log\n"), 1<<18)
	broken := errors.New("the node is gone")
	for _, end := range []error{io.EOF, broken} {
		to := &pieces{}
		from := io.MultiReader(bytes.NewReader(text), iotest.ErrReader(end))
		n, err := io.Copy(to, &endApart{ReadCloser: io.NopCloser(from)})
		if n != int64(len(text)) || !bytes.Equal(to.Bytes(), text) || (err == nil) != (end == io.EOF) ||
			err != nil && !errors.Is(err, end) {
			t.Errorf("%d of %d bytes, %v; want the end %v", n, len(text), err, end)
		}
		if most := len(text)/(128<<10) + 3; to.writes > most {
			t.Errorf("%d writes for %d bytes, at most %d", to.writes, len(text), most)
		}
	}
}
