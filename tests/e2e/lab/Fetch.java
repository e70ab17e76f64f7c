// One request as a Java program makes it: METHOD URL [BODY]. Prints the status and what came.
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;

public class Fetch {
    public static void main(String[] args) throws Exception {
        HttpURLConnection c = (HttpURLConnection) new URL(args[1]).openConnection();
        c.setRequestMethod(args[0]);
        c.setConnectTimeout(20000);
        c.setReadTimeout(60000);
        if (args.length > 2) {
            c.setDoOutput(true);
            c.getOutputStream().write(args[2].getBytes("UTF-8"));
        }
        int status = c.getResponseCode();
        InputStream in = status >= 400 ? c.getErrorStream() : c.getInputStream();
        System.out.println(status + " " + (in == null ? "" : new String(in.readAllBytes(), "UTF-8")));
    }
}
