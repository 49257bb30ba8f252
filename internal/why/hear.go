// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/wherryproject/wherry/internal/oneline"
)

// Topic is what a line of a log plainly says.
type Topic string

// The topics.
const (
	Refused    Topic = "refused"    // nobody listens where it wants to connect
	NoName     Topic = "noName"     // a name that nobody knows
	TimedOut   Topic = "timedOut"   // no answer to a connection
	ReadOnly   Topic = "readOnly"   // a write to a read-only file system
	Denied     Topic = "denied"     // a file it may not use
	Full       Topic = "full"       // no space left
	Taken      Topic = "taken"      // the address it wants to listen at
	NoMemory   Topic = "noMemory"   // its own memory management says so
	ExecFormat Topic = "execFormat" // what it wants to run is no program here
)

// Said is a line of a log that plainly says what is wrong.
type Said struct {
	Topic Topic
	Line  string // on one line
	// Object is the host, name or file that it is about; empty if the line does not show it.
	Object string
	Port   string
}

// patterns are how programs say it, in the order in which they are tried. Each has at most one group: the object.
func patterns() []struct {
	topic  Topic
	phrase string // that must be in the line, in lower case
	object []*regexp.Regexp
} {
	type row = struct {
		topic  Topic
		phrase string
		object []*regexp.Regexp
	}
	names := []*regexp.Regexp{nameQuoted, nameLookup, nameHost, nameENOTFOUND, nameUnknownHost}
	return []row{
		{NoName, "bad address", names}, // busybox
		{NoName, "no such host", names},
		{NoName, "could not resolve", names},
		{NoName, "couldn't resolve", names},
		{NoName, "name or service not known", names},
		{NoName, "name does not resolve", names},
		{NoName, "nodename nor servname", names},
		{NoName, "temporary failure in name resolution", names},
		{NoName, "could not translate host name", names},
		{NoName, "getaddrinfo enotfound", names},
		{NoName, "getaddrinfo eai_again", names},
		{NoName, "unknownhostexception", names},
		{NoName, "unknown host", names},
		{Refused, "connection refused", nil},
		{Refused, "econnrefused", nil},
		{TimedOut, "connection timed out", nil},
		{TimedOut, "etimedout", nil},
		{TimedOut, "i/o timeout", nil},
		{ReadOnly, "read-only file system", []*regexp.Regexp{filePath}},
		{ReadOnly, "erofs", []*regexp.Regexp{filePath}},
		{Full, "no space left on device", []*regexp.Regexp{filePath}},
		{Taken, "address already in use", nil},
		{Taken, "eaddrinuse", nil},
		{ExecFormat, "exec format error", []*regexp.Regexp{filePath}},
		{NoMemory, "java.lang.outofmemoryerror", nil},
		{NoMemory, "javascript heap out of memory", nil},
		{NoMemory, "cannot allocate memory", nil},
		{NoMemory, "memoryerror", nil},
		{Denied, "permission denied", []*regexp.Regexp{filePath}},
		{Denied, "eacces", []*regexp.Regexp{filePath}},
	}
}

var (
	nameQuoted      = regexp.MustCompile(`(?:address|host name|host|resolve) ['"]([^'"\s]+)['"]`)
	nameLookup      = regexp.MustCompile(`lookup ([^\s:]+)`)
	nameHost        = regexp.MustCompile(`(?i)resolve (?:host|hostname|proxy)?:? ?'?([A-Za-z0-9._-]+)`)
	nameENOTFOUND   = regexp.MustCompile(`(?:ENOTFOUND|EAI_AGAIN) ([^\s:]+)`)
	nameUnknownHost = regexp.MustCompile(`(?i)unknown ?host(?:exception)?:? ['"]?([A-Za-z0-9._-]+)`)
	filePath        = regexp.MustCompile(`(/[^\s:'"]+)`)
	address         = regexp.MustCompile(`\[?((?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]*:[0-9a-fA-F:]+[0-9a-fA-F])\]?`)
	portAfter       = regexp.MustCompile(`^\]?:(\d{1,5})\b`)
	portNamed       = regexp.MustCompile(`(?i)\bport[ =:]+(\d{1,5})\b`)
	notFound        = regexp.MustCompile(`(?:^|: )([^\s:]+): (?:command )?not found$`)
)

// ReadLog finds in the last lines of a log what they plainly say, each thing once, the latest first.
func ReadLog(lines []string) (all []Said) {
	table := patterns()
	for _, raw := range slices.Backward(lines) {
		line := oneline.Cut(raw, longestLine)
		lower := strings.ToLower(line)
		for _, p := range table {
			if !strings.Contains(lower, p.phrase) {
				continue
			}
			s := Said{Topic: p.topic, Line: line}
			for _, re := range p.object {
				if m := re.FindStringSubmatch(line); m != nil {
					s.Object = strings.TrimRight(m[1], ".,;)")
					if p.topic == NoName {
						s.Object, _, _ = strings.Cut(s.Object, ":") // without the port
					}
					break
				}
			}
			if p.topic == Refused || p.topic == TimedOut {
				s.Object, s.Port = whither(line)
			}
			if !slices.ContainsFunc(all, func(o Said) bool {
				return o.Topic == s.Topic && (o.Object == s.Object || s.Object == "" || o.Object == "")
			}) {
				all = append(all, s)
			}
			break
		}
	}
	return all
}

// whither is the address, and the port, that a line about a connection names.
func whither(line string) (host, port string) {
	for _, at := range address.FindAllStringSubmatchIndex(line, -1) {
		text := line[at[2]:at[3]]
		if _, err := netip.ParseAddr(text); err != nil {
			continue
		}
		host = text // the last one is whom it wanted: "dial tcp 10.1.0.5:33012->10.2.0.1:5432"
		port = ""
		if m := portAfter.FindStringSubmatch(line[at[3]:]); m != nil {
			port = m[1]
		}
	}
	if port == "" {
		if m := portNamed.FindStringSubmatch(line); m != nil {
			port = m[1]
		}
	}
	return host, port
}

// place is the host and port of a line, in words.
func (s Said) place() string {
	switch {
	case s.Object == "" && s.Port == "":
		return "where it wants to connect"
	case s.Object == "":
		return "at port " + s.Port
	case s.Port == "":
		return "at " + s.Object
	}
	if strings.Contains(s.Object, ":") {
		return "at [" + s.Object + "]:" + s.Port
	}
	return "at " + s.Object + ":" + s.Port
}

// Words says what a line says.
func (s Said) Words() string {
	what := s.Object
	if what == "" {
		what = "a file"
	}
	switch s.Topic {
	case Refused:
		return fmt.Sprintf("nobody answers %s (connection refused)", s.place())
	case TimedOut:
		return fmt.Sprintf("nothing comes back from %s (timed out)", strings.TrimPrefix(s.place(), "at "))
	case NoName:
		if s.Object == "" {
			return "a name that it asked for does not exist"
		}
		return fmt.Sprintf("the name %s could not be resolved", s.Object)
	case ReadOnly:
		return fmt.Sprintf("it wants to write %s, on a file system that is read-only", what)
	case Denied:
		return fmt.Sprintf("it may not use %s (permission denied)", what)
	case Full:
		return "there is no space left where it wants to write"
	case Taken:
		return "the address that it wants to listen at is in use already"
	case NoMemory:
		return "it could get no more memory, and says so itself"
	case ExecFormat:
		return fmt.Sprintf("the kernel cannot run %s: it is built for another processor, or is a script without #! in its first line",
			what)
	}
	return ""
}

// tries are what to try about a line of the log of a container.
func (s Said) tries(b Box) []string {
	switch s.Topic {
	case Refused:
		if a, err := netip.ParseAddr(s.Object); err == nil && a.IsLoopback() {
			return []string{"localhost is the pod itself: a server in another pod is reached by the name of its Service"}
		}
		return []string{"look whether the server there runs, listens at this port and on all addresses (0.0.0.0, not 127.0.0.1)"}
	case TimedOut:
		return []string{"look for a network policy or firewall on the way, and whether the address is right"}
	case NoName:
		return []string{"correct the name; a Service of another namespace is NAME.NAMESPACE"}
	case ReadOnly:
		if b.ReadOnlyRoot {
			return []string{"mount an emptyDir where it writes, or have it write there; " +
				"its root file system is read-only by securityContext.readOnlyRootFilesystem"}
		}
		return []string{"look at readOnly of its volumeMounts"}
	case Denied:
		return []string{"look as which user it runs (securityContext.runAsUser, fsGroup) and whose the file is; " +
			"a file of a ConfigMap is executable with defaultMode: 0755"}
	case Full:
		return []string{"give the volume more room, or remove what is not needed"}
	case Taken:
		return []string{"have one of the two listen at another port: containers of a pod share their ports, and with hostNetwork all programs of the node"}
	case NoMemory:
		return []string{"raise resources.limits.memory, and the program's own limit (-Xmx, --max-old-space-size) with it"}
	case ExecFormat:
		return []string{"use an image for the node's processor, or write #!/bin/sh into the script's first line"}
	}
	return nil
}

func saidOf(all []Said, topic Topic) bool {
	return slices.ContainsFunc(all, func(s Said) bool { return s.Topic == topic })
}

// missingCommand is the command that a shell did not find, by its words.
func missingCommand(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if m := notFound.FindStringSubmatch(oneline.Cut(line, longestLine)); m != nil {
			return m[1]
		}
	}
	return ""
}
