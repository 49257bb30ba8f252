// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// fileName is that of the file in its pod's folder.
const fileName = "devices.json"

// holdings are what a pod has, by container and resource. They are not changed: with makes others.
type holdings map[string]map[string]holding

// holding is what a container has of one resource.
type holding struct {
	IDs []string `json:"ids"`
	// Answer is the plug-in's ContainerAllocateResponse; nil: it has not answered yet.
	Answer []byte `json:"answer,omitempty"`
}

func newHolding(ids []string, answer *plugin.ContainerAllocateResponse) (holding, error) {
	h := holding{IDs: ids}
	if answer == nil {
		return h, nil
	}
	var err error
	h.Answer, err = proto.Marshal(answer)
	if h.Answer == nil { // of an answer that says nothing
		h.Answer = []byte{}
	}
	return h, err
}

// MarshalJSON keeps an empty answer apart from none.
func (h holding) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		IDs    []string `json:"ids"`
		Answer *[]byte  `json:"answer,omitempty"`
	}{h.IDs, answerOrNil(h.Answer)})
}

func answerOrNil(b []byte) *[]byte {
	if b == nil {
		return nil
	}
	return &b
}

func (h holding) answer() (*plugin.ContainerAllocateResponse, error) {
	out := &plugin.ContainerAllocateResponse{}
	if err := proto.Unmarshal(h.Answer, out); err != nil {
		return nil, fmt.Errorf("what the device plug-in has answered cannot be read: %w", err)
	}
	return out, nil
}

func (h holdings) get(container, resource string) holding { return h[container][resource] }

// of tells whether there is something of a resource.
func (h holdings) of(resource string) bool {
	for _, has := range h {
		if len(has[resource].IDs) > 0 {
			return true
		}
	}
	return false
}

func (h holdings) with(container, resource string, has holding) holdings {
	out := maps.Clone(h)
	if out == nil {
		out = holdings{}
	}
	c := maps.Clone(out[container])
	if c == nil {
		c = map[string]holding{}
	}
	c[resource] = has
	out[container] = c
	return out
}

func readHoldings(file string) (h holdings, err error) {
	err = readJSON(file, &h)
	return h, err
}

func writeHoldings(file string, h holdings) error { return writeJSON(file, h) }

// readCounts reads how many devices there were of which resource.
func readCounts(file string) (counts map[string]int, err error) {
	err = readJSON(file, &counts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for name, n := range counts {
		if n < 0 {
			delete(counts, name)
		}
	}
	return counts, err
}

func writeCounts(file string, counts map[string]int) error { return writeJSON(file, counts) }

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// writeJSON replaces a file in one step.
func writeJSON(file string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	fresh := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}
