// SPDX-License-Identifier: Apache-2.0

package quantities

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// RS-01: numbers with exponents that nobody means are found however they are written, and others are left alone.
func TestEndlessNumber(t *testing.T) {
	for text, want := range map[string]struct{ json, yaml bool }{
		`{"cpu":"1e-10000000"}`:                                      {true, true},
		`{"cpu":1e-10000000}`:                                        {true, false}, // in YAML it is a number, which is 0
		`{"cpu":"1.E-10000"}`:                                        {true, true},
		`{"cpu":"0.5e-00010000"}`:                                    {true, true},
		`{"cpu":"1\u0065-10000000"}`:                                 {true, true},
		`{"cpu":"\u0031\u0045\u002d9999999"}`:                        {true, true},
		"cpu: \"1\\x65-10000000\"":                                   {false, true}, // no JSON
		"cpu: \"1e-1\\\n  0000000\"":                                 {false, true},
		`{"cpu":"1e-9"}`:                                             {false, false},
		`{"cpu":"1e-9999"}`:                                          {false, false},
		`{"cpu":"1e10000000"}`:                                       {false, false}, // this is quick
		`{"name":"e2e-29384920"}`:                                    {false, false}, // of a CronJob e2e
		`{"name":"test-2e-29384920"}`:                                {false, false},
		`{"name":"2e-29384920-x7k2p"}`:                               {false, false},
		`{"cpu":"-1e-10000000"}`:                                     {true, true},
		`{"hugepages-1e-10000000":"2Mi"}`:                            {true, true},
		`{"requests.hugepages-1e-10000000":"2Mi"}`:                   {true, true},
		`{"medium":"HugePages--1e-10000000"}`:                        {true, true},
		`{"hugepages-2Mi":"2Mi"}`:                                    {false, false},
		`["1e-10000000"]`:                                            {true, true},
		`1e-10000000`:                                                {true, false},
		`{"name":"the-10000000"}`:                                    {false, false},
		`{"name":"e-10000000"}`:                                      {false, false},
		`{"name":"1e-"}`:                                             {false, false},
		`{"cpu":"` + strings.Repeat("1", digitsMost+1) + `"}`:        {true, true},
		`{"cpu":"0.` + strings.Repeat("\\u0030", digitsMost) + `1"}`: {true, true},
		`{"cpu":"` + strings.Repeat("1", digitsMost) + `"}`:          {false, false},
		`{"hash":"` + strings.Repeat("123a", digitsMost) + `"}`:      {false, false},
		`\u`: {false, false},
		``:   {false, false},
	} {
		if got := Endless([]byte(text), "application/json"); (got != "") != want.json {
			t.Errorf("%.40s as JSON: %q", text, got)
		}
		if got := Endless([]byte(text), "application/apply-patch+yaml"); (got != "") != want.yaml {
			t.Errorf("%.40s as YAML: %q", text, got)
		}
	}
}

// RS-01: also as protobuf, in which texts are as they are.
func TestEndlessNumberInProtobuf(t *testing.T) {
	for text, want := range map[string]bool{
		"1e-10000000": true, "+1e-10000000": true, "0." + strings.Repeat("0", 66) + "1e-10000000": true, // its length is a letter
		"0." + strings.Repeat("0", 200) + "1e-10000000": true, "e2e-29384920": false, "test-2e-29384920": false, "1e-9": false,
		"hugepages-1e-10000000": true, "hugepages-1Gi": false,
	} {
		pod := corev1.Pod{}
		pod.Spec.NodeName = text // a text like any; a quantity cannot be made so here, as it would have to be read
		message, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if got := Endless(message, "application/vnd.kubernetes.protobuf"); (got != "") != want {
			t.Errorf("%.40s: %q", text, got)
		}
	}
}
