// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// JSON writes what status.json says, for people too.
func JSON(state any) ([]byte, error) {
	text, err := json.MarshalIndent(state, "", "  ")
	return append(text, '\n'), err
}

// signals is the highest number of one (signal(7): SIGRTMAX).
const signals = 64

// Signal is the name of the signal that an exit code stands for as shells and runtimes write it (128 and its number);
// nothing if it stands for none.
func Signal(exitCode int) string {
	if n := exitCode - 128; n > 0 && n <= signals {
		return unix.SignalName(unix.Signal(n))
	}
	return ""
}

// EnvText makes the file of a container's environment: a variable a line. In values, a newline is written \n and a
// backslash \\.
func EnvText(vars []string) []byte {
	var b bytes.Buffer
	for _, v := range vars {
		b.WriteString(strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(v))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// CRILogEnd returns the end of a log file in CRI format, of so many bytes of the file at most, without what the format
// adds.
func CRILogEnd(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return nil, err
	}
	if from > 0 { // it begins in the middle of a line
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return CRILogText(data), nil
}

// CRILogText takes off what the CRI's format adds to each line: time, stream, and whether the line goes on.
func CRILogText(data []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(data) {
		f := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(" "), 4)
		if len(f) < 4 {
			continue
		}
		b.Write(f[3])
		if string(f[2]) != "P" {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// LastLines is the end of a text: so many lines of it at most.
func LastLines(text []byte, lines int) []byte {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for ; lines > 0 && at >= 0; lines-- {
		at = bytes.LastIndexByte(text[:at], '\n')
	}
	return text[at+1:]
}
