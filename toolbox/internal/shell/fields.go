// SPDX-License-Identifier: Apache-2.0

package shell

import "strings"

// blanks are the separators of which many count as one, and none in front or at the end.
const blanks = " \t\n"

// splitRead splits what read has read as POSIX has it, into n fields, of which the last one has the rest, or into all
// if n is 0: a separator that is no blank ends a field, also an empty one. raw: a backslash is a byte like others. The
// interpreter's own takes all separators for blanks.
func splitRead(text, separators string, raw bool, n int) (fields []string) {
	s := fieldSplitter{separators: separators}
	for i := 0; i < len(text); i++ {
		quoted := !raw && text[i] == '\\'
		if quoted {
			if i++; i == len(text) {
				break
			}
		}
		s.text = append(s.text, text[i])
		s.quoted = append(s.quoted, quoted)
	}
	s.skip(blanks)
	for len(s.text) > s.at {
		if n > 0 && len(fields) == n-1 {
			return append(fields, s.rest())
		}
		fields = append(fields, s.field())
	}
	return fields
}

// fieldSplitter is a text on its way into fields; what is quoted separates nothing.
type fieldSplitter struct {
	separators string
	text       []byte
	quoted     []bool
	at         int
}

// separates tells whether the byte at i is a separator that is one of those given.
func (s *fieldSplitter) separates(i int, which string) bool {
	return !s.quoted[i] && strings.IndexByte(s.separators, s.text[i]) >= 0 &&
		(which == "" || strings.IndexByte(which, s.text[i]) >= 0)
}

func (s *fieldSplitter) skip(which string) {
	for s.at < len(s.text) && s.separates(s.at, which) {
		s.at++
	}
}

// field takes a field and what ends it: blanks, or one other separator with blanks around it.
func (s *fieldSplitter) field() string {
	begin := s.at
	for s.at < len(s.text) && !s.separates(s.at, "") {
		s.at++
	}
	field := string(s.text[begin:s.at])
	s.skip(blanks)
	if s.at < len(s.text) && s.separates(s.at, "") {
		s.at++
		s.skip(blanks)
	}
	return field
}

// rest is all that is left, without blanks at its end. If that is one field, it is without what ends it.
func (s *fieldSplitter) rest() string {
	begin := s.at
	if field := s.field(); s.at == len(s.text) {
		return field
	}
	end := len(s.text)
	for end > begin && s.separates(end-1, blanks) {
		end--
	}
	return string(s.text[begin:end])
}
