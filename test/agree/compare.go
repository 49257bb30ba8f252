// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// strategies are the rules of one kind, as the API server's library knows them.
type strategies struct {
	create  rest.RESTCreateStrategy
	updates map[string]rest.RESTUpdateStrategy // by subresource; "" is the object itself
}

// side is one of the two that are compared.
type side struct {
	version schema.GroupVersion
	decoder runtime.Decoder // into what the strategies take, with defaults
	encoder runtime.Encoder // into the served version
	rules   strategies
}

// verdict is what one side says of one request.
type verdict struct {
	undecoded error             // the object could not even be read
	refused   map[string]string // by field: what was wrong
	given     any               // the object with its defaults
	kept      any               // what would be stored, if it was not refused
}

// create and update are requests; update has the subresource's name.
const create = "create"

// judge puts one request to a side. A panic is an error as any other, with its own words.
func (s *side) judge(operation, namespace string, object, old any) (v verdict) {
	defer func() {
		if r := recover(); r != nil {
			v.refused = map[string]string{"": fmt.Sprint("panic: ", r)}
		}
	}()
	obj, err := s.decode(object)
	if err != nil {
		return verdict{undecoded: err}
	}
	v.given = s.encode(obj)
	subresource, ctx := strings.TrimSpace(strings.TrimPrefix(operation, "update")),
		request.WithNamespace(context.Background(), namespace)
	info := &request.RequestInfo{IsResourceRequest: true, Verb: "update", APIGroup: s.version.Group,
		APIVersion: s.version.Version, Subresource: subresource}
	if operation == create {
		info.Verb, info.Subresource = "create", ""
	}
	ctx = request.WithRequestInfo(ctx, info)
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: "jane", Groups: []string{user.SystemPrivilegedGroup}})
	if operation == create {
		if m, ok := obj.(metav1.Object); ok {
			rest.FillObjectMetaSystemFields(m)
		}
		err = rest.BeforeCreate(s.rules.create, ctx, obj)
	} else {
		before, failed := s.decode(old)
		if failed != nil {
			return verdict{undecoded: failed}
		}
		err = rest.BeforeUpdate(s.rules.updates[subresource], ctx, obj, before)
	}
	if err != nil {
		v.refused = causes(err)
		return v
	}
	v.kept = s.encode(obj)
	return v
}

func (s *side) decode(tree any) (runtime.Object, error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	obj, _, err := s.decoder.Decode(data, nil, nil)
	return obj, err
}

func (s *side) encode(obj runtime.Object) any {
	data, err := runtime.Encode(s.encoder, obj.DeepCopyObject())
	if err != nil {
		return map[string]any{"unencodable": err.Error()}
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return map[string]any{"unencodable": err.Error()}
	}
	if m, ok := tree["metadata"].(map[string]any); ok {
		delete(m, "creationTimestamp")
		delete(m, "uid")
	}
	if status, ok := tree["status"].(map[string]any); ok {
		maskNow(status["conditions"])
	}
	return tree
}

// maskNow replaces the times of conditions that were set just now: the sides are asked one after the other.
func maskNow(conditions any) {
	list, _ := conditions.([]any)
	for _, c := range list {
		c, _ := c.(map[string]any)
		text, _ := c["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil && time.Since(at).Abs() < time.Minute {
			c["lastTransitionTime"] = "now"
		}
	}
}

// causes are the fields that an error names. What a node does not do yet is not a rule of the object: it is left out.
func causes(err error) map[string]string {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		return map[string]string{"": err.Error()}
	}
	found := map[string]string{}
	for _, c := range status.ErrStatus.Details.Causes {
		if !strings.Contains(c.Message, "not supported yet: ") {
			found[c.Field] = c.Message
		}
	}
	return found
}

// finding is one thing in which the sides differ.
type finding struct {
	kind, operation string
	what            string // ours refuses, theirs refuses, default, stored, ours reads, theirs reads
	field           string // without indexes: containers[*]
	words           string // what was said, or the two values
}

func (f finding) String() string {
	return fmt.Sprintf("%s %s: %s %s", f.kind, f.operation, f.what, f.field)
}

// compare says in what two verdicts differ.
func compare(kind, operation string, ours, theirs verdict) (all []finding) {
	add := func(what, field, words string) {
		all = append(all, finding{kind, operation, what, anyIndex(field), words})
	}
	if (ours.undecoded == nil) != (theirs.undecoded == nil) {
		if ours.undecoded == nil {
			add("ours reads", "", theirs.undecoded.Error())
		} else {
			add("theirs reads", "", ours.undecoded.Error())
		}
		return all
	}
	if ours.undecoded != nil {
		return nil
	}
	for _, field := range sortedKeys(ours.refused) {
		if _, ok := theirs.refused[field]; !ok {
			add("ours refuses", field, ours.refused[field])
		}
	}
	for _, field := range sortedKeys(theirs.refused) {
		if _, ok := ours.refused[field]; !ok {
			add("theirs refuses", field, theirs.refused[field])
		}
	}
	differ(nil, ours.given, theirs.given, func(path []any, a, b any) { add("default", pathString(path), values(a, b)) })
	if ours.kept != nil && theirs.kept != nil && len(all) == 0 {
		differ(nil, ours.kept, theirs.kept, func(path []any, a,
			b any) {
			add("stored", pathString(path), values(a, b))
		})
	}
	return all
}

func values(a, b any) string {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return fmt.Sprintf("ours %.200s, theirs %.200s", x, y)
}

// anyIndex puts [*] in the place of every index and key.
func anyIndex(field string) string {
	var b strings.Builder
	for field != "" {
		before, after, ok := strings.Cut(field, "[")
		b.WriteString(before)
		if !ok {
			break
		}
		b.WriteString("[*]")
		end := closing(after)
		if end < 0 {
			break
		}
		field = after[end+1:]
	}
	return b.String()
}

// closing is where the bracket ends that was opened before text.
func closing(text string) int {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		return len(quoted)
	}
	depth := 1
	for i, r := range text {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// keyed are the fields that are maps: what follows is a key, as good as any other.
func keyed(field any) bool {
	switch field {
	case "limits", "requests", "capacity", "allocatable", "hard", "used", "default", "defaultRequest", "min", "max",
		"maxLimitRequestRatio",
		"overhead", "podFixed", "labels", "annotations", "data", "stringData", "binaryData", "nodeSelector",
		"matchLabels", "deprecatedTopology", "extra":
		return true
	}
	return false
}

// differ calls back for each place in which two trees differ.
func differ(path []any, a, b any, say func(path []any, a, b any)) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for _, k := range sortedKeys(union(x, y)) {
			var step any = k
			if len(path) > 0 && keyed(path[len(path)-1]) {
				step = 0
			}
			differ(append(slices.Clone(path), step), x[k], y[k], say)
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			differ(append(slices.Clone(path), i), x[i], y[i], say)
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		say(path, a, b)
	}
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// subject is one kind with both sides' rules.
type subject struct {
	kind         schema.GroupVersionKind
	namespace    string
	typ          reflect.Type
	good         []any
	ours, theirs *side
	operations   []string
}

// attempt is what is put to both sides: a good object with changes, in an update beside what is stored.
type attempt struct {
	operation string
	good      int
	old       []change // only of updates: what the stored object has
	changes   []change
}

func (s *subject) try(a attempt) (ours, theirs verdict, findings []finding) {
	old := applied(s.good[a.good], a.old)
	if a.operation != create {
		old = applied(old, []change{{[]any{"metadata", "uid"}, "u1"}, {[]any{"metadata", "resourceVersion"}, "5"},
			{[]any{"metadata", "creationTimestamp"}, "2026-01-01T00:00:00Z"}})
	}
	object := applied(old, a.changes)
	ours = s.ours.judge(a.operation, s.namespace, object, old)
	theirs = s.theirs.judge(a.operation, s.namespace, object, old)
	return ours, theirs, compare(s.kind.Kind, a.operation, ours, theirs)
}
