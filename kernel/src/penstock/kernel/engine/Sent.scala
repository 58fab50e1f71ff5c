package penstock.kernel.engine

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream, ObjectStreamClass}

/** Something that goes to the tasks of every batch and is the same in all of them: made bytes once, and read by those who need it.
  *
  * Trees of expressions take Java long to write and to read; tasks that find what they need with `Kept` do neither.
  */
final class Sent[A] private (bytes: Array[Byte]) extends Serializable {
  def read(): A = {
    val loader = Option(Thread.currentThread.getContextClassLoader).getOrElse(getClass.getClassLoader)
    val in = new ObjectInputStream(new ByteArrayInputStream(bytes)) {
      override def resolveClass(described: ObjectStreamClass): Class[_] =
        try Class.forName(described.getName, false, loader)
        catch { case _: ClassNotFoundException => super.resolveClass(described) }
    }
    in.readObject().asInstanceOf[A]
  }
}

object Sent {
  def apply[A](thing: A): Sent[A] = {
    val bytes = new ByteArrayOutputStream()
    val out = new ObjectOutputStream(bytes)
    out.writeObject(thing)
    out.close()
    new Sent[A](bytes.toByteArray)
  }
}
