// One request by java.net.http, which looks at no proxy variable: METHOD URL [BODY]. Prints the status and what came.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class HttpFetch {
    public static void main(String[] args) throws Exception {
        HttpRequest.BodyPublisher body = args.length > 2 ? HttpRequest.BodyPublishers.ofString(args[2])
                                                         : HttpRequest.BodyPublishers.noBody();
        HttpRequest request = HttpRequest.newBuilder(URI.create(args[1])).method(args[0], body).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.body());
    }
}
