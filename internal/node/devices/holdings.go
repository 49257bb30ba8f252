// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"google.golang.org/protobuf/proto"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/wherryproject/wherry/internal/node/statefile"
)

// FileName is that of the file in a pod's folder that says what the pod has.
const FileName = "devices.json"

// holdings are what a pod has, by container and resource. They are not changed: with makes others.
type holdings map[string]map[string]holding

// holding is what a container has of one resource.
type holding struct {
	IDs []string `json:"ids"`
	// Answer is the plug-in's ContainerAllocateResponse; nil: it has not answered yet.
	Answer []byte `json:"answer,omitempty"`
	// PreStart says that the plug-in wants to be asked before each start: it may reset the devices.
	PreStart bool `json:"preStart,omitempty"`
	// Reserved says that the container has not started yet: it is to have these devices, or others that are as near to
	// the NUMA nodes Near.
	Reserved bool    `json:"reserved,omitempty"`
	Near     []int64 `json:"near,omitempty"`
}

func newHolding(ids []string, answer *plugin.ContainerAllocateResponse, preStart bool) (holding, error) {
	h := holding{IDs: ids, PreStart: preStart}
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

		PreStart bool    `json:"preStart,omitempty"`
		Reserved bool    `json:"reserved,omitempty"`
		Near     []int64 `json:"near,omitempty"`
	}{h.IDs, answerOrNil(h.Answer), h.PreStart, h.Reserved, h.Near})
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

// of reports whether there is something of a resource.
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
	err = statefile.Read(file, &h)
	return h, err
}

func writeHoldings(file string, h holdings) error { return statefile.Write(file, h) }

// readCounts reads how many devices there were of which resource.
func readCounts(file string) (counts map[string]int, err error) {
	err = statefile.Read(file, &counts)
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

func writeCounts(file string, counts map[string]int) error { return statefile.Write(file, counts) }
