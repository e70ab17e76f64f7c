// One request as a Go program makes it: METHOD URL [BODY]. Prints the status and what came.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	var body io.Reader
	if len(os.Args) > 3 {
		body = strings.NewReader(os.Args[3])
	}
	request, err := http.NewRequest(os.Args[1], os.Args[2], body)
	if err == nil {
		var answer *http.Response
		if answer, err = http.DefaultClient.Do(request); err == nil {
			text, _ := io.ReadAll(answer.Body)
			fmt.Println(answer.StatusCode, string(text))
			return
		}
	}
	fmt.Println(err)
	os.Exit(1)
}
