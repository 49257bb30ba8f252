// SPDX-License-Identifier: Apache-2.0

package kubeconf

import (
	"encoding/base64"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// file is a kubeconfig; what it has beyond this is unusual.
type file struct {
	APIVersion  word           `yaml:"apiVersion"`
	Kind        word           `yaml:"kind"`
	Preferences map[string]any `yaml:"preferences"`
	Extensions  any            `yaml:"extensions"`
	Current     word           `yaml:"current-context"`
	Clusters    []struct {
		Name    word    `yaml:"name"`
		Cluster cluster `yaml:"cluster"`
	} `yaml:"clusters"`
	Contexts []struct {
		Name    word    `yaml:"name"`
		Context context `yaml:"context"`
	} `yaml:"contexts"`
	Users []struct {
		Name word `yaml:"name"`
		User user `yaml:"user"`
	} `yaml:"users"`
}

type cluster struct {
	Server     word `yaml:"server"`
	CA         word `yaml:"certificate-authority"`
	CAData     data `yaml:"certificate-authority-data"`
	Extensions any  `yaml:"extensions"`
}

type context struct {
	Cluster    word `yaml:"cluster"`
	User       word `yaml:"user"`
	Namespace  word `yaml:"namespace"`
	Extensions any  `yaml:"extensions"`
}

type user struct {
	Cert       word `yaml:"client-certificate"`
	CertData   data `yaml:"client-certificate-data"`
	Key        word `yaml:"client-key"`
	KeyData    data `yaml:"client-key-data"`
	Token      word `yaml:"token"`
	Extensions any  `yaml:"extensions"`
}

// word is a string that is written as one: what YAML would take for a number is an error to client-go.
type word string

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *word) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return fmt.Errorf("line %d: not a string", n.Line)
	}
	*w = word(n.Value)
	return nil
}

// data is what is written in base64.
type data []byte

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *data) UnmarshalYAML(n *yaml.Node) error {
	var w word
	if err := w.UnmarshalYAML(n); err != nil {
		return err
	}
	text, err := base64.StdEncoding.DecodeString(string(w))
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*d = text
	return nil
}
