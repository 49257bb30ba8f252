// SPDX-License-Identifier: Apache-2.0

package audit

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/apis/audit/validation"
	"k8s.io/apiserver/pkg/audit"
)

//go:embed builtin.yaml
var builtin []byte

//go:embed quiet.yaml
var quiet []byte

// readPolicy reads a policy file. Each fault names the file, and the line and field where there is one; unlike
// kube-apiserver, which goes on with what it understood, a field that nobody knows is a fault.
func readPolicy(file string) (*internal.Policy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--audit-policy-file: %w", err)
	}
	p, err := decodePolicy(text)
	if err != nil {
		return nil, fmt.Errorf("--audit-policy-file %s: %w", file, err)
	}
	return p, nil
}

func decodePolicy(text []byte) (*internal.Policy, error) {
	var tree yaml.Node
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if tree.IsZero() {
		return nil, errors.New("the file is empty")
	}
	p := &internal.Policy{}
	_, gvk, err := serializer.NewCodecFactory(audit.Scheme, serializer.EnableStrict).UniversalDecoder().Decode(text,
		nil, p)
	switch {
	case runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) || runtime.IsNotRegisteredError(err) ||
		gvk != nil && (gvk.GroupVersion() != auditv1.SchemeGroupVersion || gvk.Kind != "Policy"):
		return nil, fmt.Errorf("line %d: a policy must start with apiVersion: %s and kind: Policy", max(tree.Line, 1),
			auditv1.SchemeGroupVersion)
	case err != nil:
		return nil, located(&tree, err)
	}
	if faults := validation.ValidatePolicy(p); len(faults) > 0 {
		return nil, invalid(&tree, faults)
	}
	if len(p.Rules) == 0 {
		return nil,
			errors.New("rules: none given, so nothing would be recorded; if that is what you want, use --audit-log-path=none")
	}
	return p, nil
}

// quoted finds the field's path in the decoder's words: unknown field "rules[0].levle".
var quoted = regexp.MustCompile(`"([^"]+)"`)

// located puts lines before what the decoder says.
func located(tree *yaml.Node, err error) error {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return err
	}
	var errs []error
	for _, e := range strict.Errors() {
		at := ""
		if m := quoted.FindStringSubmatch(e.Error()); m != nil {
			at = m[1]
		}
		errs = append(errs, fmt.Errorf("%s%w", lineOf(tree, at), e))
	}
	return errors.Join(errs...)
}

func invalid(tree *yaml.Node, faults field.ErrorList) error {
	var errs []error
	for _, f := range faults {
		errs = append(errs, fmt.Errorf("%s%w", lineOf(tree, f.Field), f))
	}
	return errors.Join(errs...)
}

// step is one part of a path: a name, or an index in brackets.
var step = regexp.MustCompile(`[^.\[\]]+`)

// lineOf is "line 7: " for a path such as rules[0].level, or that of the nearest thing around it.
func lineOf(tree *yaml.Node, path string) string {
	at, line := tree, 0
	if at.Kind == yaml.DocumentNode && len(at.Content) > 0 {
		at = at.Content[0]
	}
	for _, name := range step.FindAllString(path, -1) {
		key, value := child(at, name)
		if value == nil {
			break
		}
		line, at = key.Line, value
	}
	if line == 0 {
		return ""
	}
	return "line " + strconv.Itoa(line) + ": "
}

func child(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}
