// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/timeline"
)

// GeneratedName is the annotation of an event that names what a request with generateName made.
const GeneratedName = "audit.wherry.dev/generated-name"

// Count is the annotation of an event that stands for several refused requests of clients without an identity: their
// number.
const Count = "audit.wherry.dev/count"

// Entry is a request as a person reads it. Its texts hold no control characters.
type Entry struct {
	ID        string
	When      time.Time // the request came
	User      string    // "admin as jane" if impersonated
	Verb      string
	Namespace string
	What      string
	Result    string
	Message   string // why it was refused
	From      string
	Agent     string
	Open      bool // it has begun, and nothing is known of its end
}

// Say words an event.
func Say(e *auditv1.Event) Entry {
	entry := Entry{
		ID: string(e.AuditID), When: e.RequestReceivedTimestamp.Time, User: user(e), Verb: e.Verb, What: what(e),
		Result: result(e), From: strings.Join(e.SourceIPs, ","), Agent: e.UserAgent,
		Open: e.Stage == auditv1.StageResponseStarted && (e.ResponseStatus == nil ||
			e.ResponseStatus.Code < http.StatusBadRequest),
	}
	if e.ObjectRef != nil {
		entry.Namespace = e.ObjectRef.Namespace
	}
	if s := e.ResponseStatus; s != nil && s.Code >= http.StatusBadRequest {
		entry.Message = exitcode.Plain(s.Message)
	}
	for _, text := range []*string{&entry.ID, &entry.User, &entry.Verb, &entry.Namespace, &entry.What, &entry.Result,
		&entry.Message, &entry.From, &entry.Agent} {
		*text = plain(*text)
	}
	return entry
}

func user(e *auditv1.Event) string {
	name := e.User.Username
	if name == "" {
		name = "(nobody)"
	}
	if i := e.ImpersonatedUser; i != nil {
		name += " as " + i.Username
	}
	return name
}

// result is the answer's code, and for what lasted how it ended.
func result(e *auditv1.Event) string {
	if e.Stage == auditv1.StagePanic {
		return "500 panic"
	}
	code := int32(0)
	if e.ResponseStatus != nil {
		code = e.ResponseStatus.Code
	}
	text := strconv.Itoa(int(code))
	if code >= http.StatusBadRequest {
		reason := string(e.ResponseStatus.Reason)
		if reason == "" {
			reason = http.StatusText(int(code))
		}
		if n := e.Annotations[Count]; n != "" {
			reason += " ×" + n
		}
		return strings.TrimSpace(text + " " + reason)
	}
	if e.Stage == auditv1.StageResponseStarted {
		return text + " open"
	}
	if exit := e.Annotations[debugrun.AuditExitCode]; exit != "" {
		text += " exit " + exit
	} else if end := e.Annotations[debugrun.AuditEnd]; end != "" {
		text += " " + end
	}
	if took := e.StageTimestamp.Sub(e.RequestReceivedTimestamp.Time); lasts(e) && took >= time.Second {
		text += " after " + took.Round(time.Second).String()
	}
	return text
}

// lasts reports whether a request is one that stays open as long as its user wants.
func lasts(e *auditv1.Event) bool {
	if e.ObjectRef == nil {
		return false
	}
	switch e.ObjectRef.Subresource {
	case "exec", "attach", "portforward", "log", "proxy", timeline.Subresource:
		return true
	}
	return e.Verb == "watch"
}

// what is what a request does to what.
func what(e *auditv1.Event) string {
	ref := e.ObjectRef
	if ref == nil {
		return e.Verb + " " + e.RequestURI
	}
	query := url.Values{}
	path := e.RequestURI
	if u, err := url.ParseRequestURI(e.RequestURI); err == nil {
		query, path = u.Query(), u.Path
	}
	text := into(e, query, path)
	if text == "" {
		text = plainly(e, query)
	}
	if query.Has("dryRun") {
		text += " (dry run)"
	}
	return text
}

// plainly words what is no entry into anything.
func plainly(e *auditv1.Event, query url.Values) string {
	ref := e.ObjectRef
	object := objectOf(e)
	switch {
	case ref.Subresource == "binding":
		return "bind " + object
	case ref.Subresource == "eviction":
		return "evict " + object
	case ref.Subresource == "token" && ref.Resource == "serviceaccounts":
		return "create a token for " + object
	case ref.Subresource != "":
		return e.Verb + " " + ref.Subresource + " of " + object
	}
	verb := e.Verb
	if verb == "deletecollection" {
		verb = "delete all"
	}
	text := verb + " " + object
	for name, as := range map[string]string{"labelSelector": " with labels ", "fieldSelector": " with fields "} {
		if s := query.Get(name); s != "" && ref.Name == "" {
			text += as + s
		}
	}
	return text
}

// objectOf is an object as kubectl writes it: pods/web, roles.rbac.authorization.k8s.io/reader.
func objectOf(e *auditv1.Event) string {
	ref := e.ObjectRef
	text := ref.Resource
	if ref.APIGroup != "" {
		text += "." + ref.APIGroup
	}
	name := ref.Name
	if name == "" {
		name = e.Annotations[GeneratedName]
	}
	if name != "" {
		text += "/" + name
	}
	return text
}

// into words requests that reach into a pod, a service or a node; "" for others.
func into(e *auditv1.Event, query url.Values, path string) string {
	notes, object := e.Annotations, objectOf(e)
	container := notes[debugrun.AuditContainer]
	if container == "" {
		container = query.Get("container")
	}
	where := object
	if container != "" {
		where += " -c " + container
	}
	switch e.ObjectRef.Subresource {
	case "exec":
		return exec(e, query, where)
	case "attach":
		return "attach to " + where
	case "portforward":
		return "port-forward to " + object
	case "log":
		return "read the log of " + where
	case timeline.Subresource:
		return "read the timeline of " + object
	case "proxy":
		_, rest, _ := strings.Cut(path, "/proxy")
		return "proxy to " + object + ": " + e.Verb + " /" + strings.TrimPrefix(rest, "/")
	case "ephemeralcontainers":
		return added(notes[debugrun.AuditAdded], object)
	case debugrun.Subresource:
		if _, name, ok := strings.Cut(path, "/"+debugrun.Subresource+"/"); ok && e.Verb == "delete" {
			return "stop debug container " + name + " of " + object
		}
	}
	return ""
}

func exec(e *auditv1.Event, query url.Values, where string) string {
	notes := e.Annotations
	command := commandOf(notes[debugrun.AuditCommand])
	if command == nil {
		command = query["command"]
	}
	image := notes[debugrun.AuditImage]
	text := ""
	switch kind := notes[debugrun.AuditKind]; {
	case kind == string(debugrun.EphemeralContainer) || query.Has(debugask.ParamName):
		text = "debug " + objectOf(e) + ": container " + first(notes[debugrun.AuditContainer],
			query.Get(debugask.ParamName)) +
			" of image " + first(image, query.Get(debugask.ParamImage))
		if target := first(notes[debugrun.AuditTarget], query.Get(debugask.ParamTarget)); target != "" {
			text += ", target " + target
		}
		if run := notes[debugrun.AuditRun]; run != "" {
			text += ", run " + run
		}
		command = typed(command)
	case kind == string(debugrun.ImageExec) || query.Has(debugask.ParamExecImage):
		text = "image exec in " + where + ": image " + first(image, query.Get(debugask.ParamExecImage))
		if notes[debugrun.AuditWritable] == "true" || query.Get(debugask.ParamExecWritable) == "true" {
			text += ", writable"
		}
	default:
		text = "exec in " + where
	}
	if len(command) > 0 {
		text += ": " + shell(command)
	}
	return text
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func commandOf(note string) (argv []string) {
	if note == "" || json.Unmarshal([]byte(note), &argv) != nil {
		return nil
	}
	return argv
}

// added words the containers that an update of pods/ephemeralcontainers adds.
func added(note, object string) string {
	var containers []debugrun.AddedContainer
	if json.Unmarshal([]byte(note), &containers) != nil || len(containers) == 0 {
		return ""
	}
	var texts []string
	for _, c := range containers {
		text := c.Name + " of image " + c.Image
		if c.Target != "" {
			text += ", target " + c.Target
		}
		if len(c.Command) > 0 {
			text += ": " + shell(typed(c.Command))
		}
		texts = append(texts, text)
	}
	return "add debug container to " + object + ": " + strings.Join(texts, "; ")
}

// typed is a command of a pod's spec as its container gets it, and as its user typed it: there $$ stands for $, and
// only in a spec. References to variables stay.
func typed(argv []string) []string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = strings.ReplaceAll(word, "$$", "$")
	}
	return words
}

// shell writes a command as a shell would take it.
func shell(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`&|;<>()*?[]{}~#!") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// plain shows control characters instead of sending them to a terminal.
func plain(text string) string {
	for _, r := range text {
		if r == '\t' || !strconv.IsPrint(r) {
			quoted := strconv.Quote(text)
			return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
		}
	}
	return text
}

// Merge makes of entries in the order of the log one per request, in the order in which requests came: of a request
// that lasts there are two, its begin and its end.
type Merge struct {
	entries []Entry
	open    map[string]int // by ID
}

// Add takes the next entry.
func (m *Merge) Add(e Entry) {
	if i, ok := m.open[e.ID]; ok && e.ID != "" {
		m.entries[i] = e
		if !e.Open {
			delete(m.open, e.ID)
		}
		return
	}
	if e.Open {
		if m.open == nil {
			m.open = map[string]int{}
		}
		m.open[e.ID] = len(m.entries)
	}
	m.entries = append(m.entries, e)
}

// Last returns the last n entries, all of them if n is negative.
func (m *Merge) Last(n int) []Entry {
	sortByTime(m.entries)
	if n >= 0 && n < len(m.entries) {
		return m.entries[len(m.entries)-n:]
	}
	return m.entries
}

// Columns are an entry as a line of a table.
func (e Entry) Columns(zone *time.Location) []string {
	return []string{e.When.In(zone).Format(time.DateTime), e.User, dash(e.Namespace), e.Result, e.What}
}

// Wide are the columns beyond those.
func (e Entry) Wide() []string {
	agent, _, _ := strings.Cut(e.Agent, " ")
	return []string{dash(e.From), dash(agent), dash(e.ID), dash(e.Message)}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Pad writes columns, each at least as wide as given; the last one is not padded.
func Pad(columns []string, widths ...int) string {
	var b strings.Builder
	for i, c := range columns {
		if i == len(columns)-1 {
			b.WriteString(c)
			break
		}
		fmt.Fprintf(&b, "%-*s  ", widths[min(i, len(widths)-1)], c)
	}
	return b.String()
}

func sortByTime(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.When.Compare(b.When) })
}
